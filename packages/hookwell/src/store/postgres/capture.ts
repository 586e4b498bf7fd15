import { type Program, runProgram, type Statement } from "../../adapters/seam.ts";
import { EventMismatchError, RevisionConflictError, StorageError } from "../../model/errors.ts";
import type { CaptureInput, CaptureResult } from "../../model/event.ts";
import { type CaptureTexts, captureTexts, type FactName, factNames } from "./capture-sql.ts";
import type { Database } from "./database.ts";
import { integer, text } from "./rows.ts";

/** Beyond so many matches, fan-out `emit` leaves the event to the dispatcher. */
const mostEmitMatches = 1_000;
/** Statements that another transaction's uncommitted or just pruned event may make necessary. */
const mostTries = 4;

type Outcome = "inserted" | "duplicate" | "mismatch" | "conflict" | "unknown";

/**
 * Writes events, all or none. One new event costs one call of a function. Whatever that does not write is looked at
 * by a second statement, which sees what was committed meanwhile. No statement fails on a conflict, so the
 * transaction stays usable; a refusal that only shows when other events of the call are written takes those back.
 */
export function* capture(
  schema: string,
  inputs: readonly CaptureInput[],
  now: string | null,
): Program<CaptureResult[]> {
  const texts = captureTexts(schema);
  const [first, ...more] = inputs;
  if (first && more.length === 0 && first.fanOut === undefined) {
    const facts = factsOf(first);
    const [row] = yield { text: texts.one, params: [...factNames.map((name) => facts[name]), now] };
    if (row && integer(row, "written") === 1) return [{ id: first.id, duplicate: false }];
  }
  const refused = refusedByTheCallItself(inputs);
  const repeats = repeatsWithin(inputs);
  const written: CaptureInput[] = [];
  const outcomes = new Map<number, Outcome>();
  let open = inputs.map((input, ord) => ({ input, ord })).filter(({ ord }) => !repeats.has(ord));
  // Up to the refused one and with it: its id may be taken by other content, which is then what is wrong with it.
  if (refused) open = open.filter(({ ord }) => ord <= refused.ord);

  for (let tries = 0; open.length > 0; tries++) {
    if (tries === mostTries)
      throw new StorageError(`Event ${open[0]!.input.id} could not be written; try again.`);
    const rows = yield statement(texts, open, now, refused !== undefined);
    for (const row of rows) outcomes.set(integer(row, "ord"), text(row, "outcome") as Outcome);
    const bad = open.find(({ ord }) => ["mismatch", "conflict"].includes(outcomes.get(ord) ?? ""));
    if (bad) {
      if (written.length > 0) yield texts.takeBack(written);
      throw refusal(bad.input, outcomes.get(bad.ord)!);
    }
    if (refused) break;
    written.push(...open.filter(({ ord }) => outcomes.get(ord) === "inserted").map(({ input }) => input));
    open = open.filter(({ ord }) => !["inserted", "duplicate"].includes(outcomes.get(ord) ?? ""));
  }
  if (refused) throw refused.error;
  return inputs.map((input, ord) => ({
    id: input.id,
    duplicate: repeats.has(ord) || outcomes.get(ord) === "duplicate",
  }));
}

interface Numbered {
  readonly input: CaptureInput;
  readonly ord: number;
}

function statement(
  texts: CaptureTexts,
  open: readonly Numbered[],
  now: string | null,
  dry: boolean,
): Statement {
  const events = open.map(({ input, ord }) => ({ ord, ...factsOf(input), ...fanOutJson(input) }));
  return {
    text: open.some(({ input }) => input.fanOut) ? texts.fanOut : texts.many,
    params: [JSON.stringify({ now_ms: now, dry, most: mostEmitMatches, events })],
  };
}

/** What the columns are given. Data travels as a string, also inside JSON, so that its own text stays exact. */
function factsOf(input: CaptureInput): Readonly<Record<FactName, string | null>> {
  const { audience, actor } = input;
  return {
    project_id: input.projectId,
    id: input.id,
    type: input.type,
    tenant_id: input.tenantId ?? "",
    subject: input.subject ?? null,
    revision: input.revision === undefined ? null : String(input.revision),
    actor: actor ? JSON.stringify({ type: actor.type, id: actor.id }) : null,
    audience: audience ? JSON.stringify(audience) : null,
    occurred_at: String(input.occurredAt.getTime()),
    data: input.data,
    content_hash: input.contentHash,
    route: input.route,
  };
}

function fanOutJson({ fanOut }: CaptureInput): object | undefined {
  return fanOut && { body: fanOut.body, filters: fanOut.filters, operational: fanOut.operational === true };
}

/** The first event that an earlier one of the same call makes impossible. */
function refusedByTheCallItself(
  inputs: readonly CaptureInput[],
): { readonly ord: number; readonly error: Error } | undefined {
  const hashes = new Map<string, string>();
  const revisions = new Set<string>();
  for (const [ord, input] of inputs.entries()) {
    const key = JSON.stringify([input.projectId, input.id]);
    const hash = hashes.get(key);
    if (hash !== undefined) {
      if (hash !== input.contentHash) return { ord, error: refusal(input, "mismatch") };
      continue;
    }
    hashes.set(key, input.contentHash);
    if (input.subject === undefined || input.revision === undefined) continue;
    const used = JSON.stringify([input.projectId, input.tenantId ?? "", input.subject, input.revision]);
    if (revisions.has(used)) return { ord, error: refusal(input, "conflict") };
    revisions.add(used);
  }
  return undefined;
}

/** Positions of events that an earlier one of the same call repeats word for word. */
function repeatsWithin(inputs: readonly CaptureInput[]): ReadonlySet<number> {
  const known = new Set<string>();
  const repeats = new Set<number>();
  for (const [ord, input] of inputs.entries()) {
    const key = JSON.stringify([input.projectId, input.id]);
    if (known.has(key)) repeats.add(ord);
    known.add(key);
  }
  return repeats;
}

function refusal(input: CaptureInput, outcome: Outcome): Error {
  return outcome === "mismatch"
    ? new EventMismatchError(input.id)
    : new RevisionConflictError(input.subject ?? "", input.revision ?? 0);
}

/** Capture in a transaction of its own. */
export async function runCapture(
  db: Database,
  inputs: readonly CaptureInput[],
  now: string | null,
): Promise<CaptureResult[]> {
  // A single event is whole in each statement, so it needs no transaction around them.
  if (inputs.length === 1)
    return await runProgram(capture(db.schema, inputs, now), (statement) => db.run(statement));
  return await db.transaction((run) => runProgram(capture(db.schema, inputs, now), run));
}
