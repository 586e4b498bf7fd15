import type { EnrichEvent, EventTypeDefinition } from "../model/definition.ts";
import type { EventRecord } from "../model/event.ts";
import { stringifyJson } from "../model/json.ts";
import type { Observer } from "../model/observe.ts";
import type { Timers } from "../model/timers.ts";

interface Enrichable {
  readonly event: EventRecord;
  readonly definition: EventTypeDefinition;
  readonly asked: EnrichEvent;
}

/**
 * Asks each type's `enrich` once for all its events and answers the patches as JSON text. It may take `timeoutMs`
 * at most; one that is late, throws or answers nonsense is reported, and its events go out as captured.
 */
export async function enrichAll(
  events: readonly Enrichable[],
  options: { readonly timers: Timers; readonly timeoutMs: number; readonly observe: Observer },
): Promise<Map<EventRecord, string>> {
  const patches = new Map<EventRecord, string>();
  await Promise.all(
    groups(events).map(async (group) => {
      try {
        const answers = await enrichInTime(group, options);
        for (const { event } of group) {
          const patch = answers.get(event.id);
          if (patch !== undefined) patches.set(event, patchText(patch));
        }
      } catch (error) {
        for (const { event } of group) patches.delete(event);
        options.observe("enrichFailed", {
          type: group[0]!.event.type,
          events: group.length,
          error: error instanceof Error ? error.message : String(error),
        });
      }
    }),
  );
  return patches;
}

/** By type; events of one id (in two projects) are asked about apart, because the answer is by id. */
function groups(events: readonly Enrichable[]): Enrichable[][] {
  const found: { readonly ids: Set<string>; readonly type: string; readonly members: Enrichable[] }[] = [];
  for (const item of events) {
    const { id, type } = item.event;
    let group = found.find((candidate) => candidate.type === type && !candidate.ids.has(id));
    if (!group) {
      group = { ids: new Set(), type, members: [] };
      found.push(group);
    }
    group.ids.add(id);
    group.members.push(item);
  }
  return found.map((group) => group.members);
}

async function enrichInTime(
  group: readonly Enrichable[],
  { timers, timeoutMs }: { readonly timers: Timers; readonly timeoutMs: number },
): Promise<ReadonlyMap<string, unknown>> {
  const late = new AbortController();
  const answered = new AbortController();
  // Through a promise, so that an enrich that throws before its first await is a rejection like any other.
  const answer = Promise.resolve().then(() =>
    group[0]!.definition.enrich!(
      group.map((item) => item.asked),
      { signal: late.signal },
    ),
  );
  const timeout = timers.sleep(timeoutMs, answered.signal).then(() => {
    if (answered.signal.aborted) return;
    late.abort();
    throw new Error(`enrich did not answer within ${timeoutMs} ms`);
  });
  try {
    const answers = await Promise.race([answer, timeout]);
    if (!(answers instanceof Map)) throw new Error("enrich must answer a Map from event id to a patch");
    return answers;
  } finally {
    answered.abort();
    // The loser of the race may still reject, with nobody listening.
    answer.catch(() => {});
    timeout.catch(() => {});
  }
}

function patchText(patch: unknown): string {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch))
    throw new Error("enrich must answer an object of fields for each event");
  return stringifyJson(patch);
}
