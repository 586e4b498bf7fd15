import type { Clock } from "../model/clock.ts";
import { InvalidStateError, NotFoundError, ValidationError } from "../model/errors.ts";
import type { IdFunc } from "../model/ids.ts";
import type { DeliverySelection, ReplayedStatus, ReplayWork } from "../model/replay.ts";
import type { Timers } from "../model/timers.ts";
import type { Now, OutboxStore, RetentionPolicy, Visibility } from "../store/contract.ts";
import { takesEvents } from "../store/replay-work.ts";
import { checkAll, checkedPage } from "./checks.ts";
import { checkSelection, seenSelection } from "./delivery-selection.ts";
import type { Scopes } from "./scope.ts";
import type { ReplayInput, Replays } from "./surface.ts";

/** Rows that one statement of a count looks at. */
const lookPerWindow = 1_000;
/** "30 days ago" said by a client is a little more by the time it is read. */
const slackMs = 60_000;
const dayMs = 86_400_000;
const replayed: readonly string[] = ["failed", "delivered", "cancelled", "missing"];

export function manageReplays<Tx>(parts: {
  readonly store: OutboxStore;
  readonly scopes: Scopes;
  readonly clock: Clock;
  readonly now: () => Now;
  readonly timers: Timers;
  readonly retention: RetentionPolicy | null;
  readonly replayId: IdFunc;
  readonly replaySoon: () => void;
}): Replays<Tx> {
  const { store, scopes, clock, now, timers, retention, replayId, replaySoon } = parts;

  /** What the input asks for, checked, for those who may see it. */
  async function workOf(input: ReplayInput, visibility: Visibility): Promise<ReplayWork> {
    const at = clock();
    checkInput(input, retention, at);
    const given = input.filter ?? { subscriptionId: input.subscriptionId! };
    const selection = await forSubscription(seenSelection(given, visibility, "/filter"), visibility);
    const until = input.until && input.until < at ? input.until : at;
    return { selection, statuses: [...new Set(input.status)], since: input.since, until };
  }

  /** A subscription that is named must be there, and take events; its parts say whose replay it is. */
  async function forSubscription(
    selection: DeliverySelection,
    visibility: Visibility,
  ): Promise<DeliverySelection> {
    const id = selection.subscriptionId;
    if (id === undefined) return selection;
    const subscription = await store.getSubscription(id, visibility);
    if (!subscription) throw new NotFoundError("subscription", id);
    const { status, projectId, tenantId, ownerId } = subscription;
    if (!takesEvents(status)) {
      const mend = status === "disabled" ? "; enable it first" : "";
      throw new InvalidStateError("subscription", id, `${status}${mend}`, "replay to");
    }
    return { projectId, ...(tenantId && { tenantId }), ...(ownerId && { ownerId }), ...selection };
  }

  async function countOf(work: ReplayWork): Promise<number> {
    const limits = { look: lookPerWindow, missingMs: retention?.eventsMs ?? null };
    let count = 0;
    for (let after: Awaited<ReturnType<typeof store.replays.count>>["next"]; ; ) {
      const window = await store.replays.count(work, after, limits, now());
      count += window.count;
      after = window.next;
      if (!after) return count;
      // Other work has its turn between the windows.
      await timers.sleep(0);
    }
  }

  return {
    async create(input, { tx = "own", visibility = {} } = {}) {
      const scope = scopes.forAsync(tx);
      const work = await workOf(input, visibility);
      const replay = await store.replays.create(scope, {
        ...work,
        id: replayId(),
        count: await countOf(work),
      });
      replaySoon();
      return replay;
    },
    count: async (input, visibility = {}) => ({ count: await countOf(await workOf(input, visibility)) }),
    async get(id, visibility = {}) {
      const replay = await store.replays.get(id, visibility);
      if (!replay) throw new NotFoundError("replay", id);
      return replay;
    },
    list: async (filter = {}, page) => store.replays.list(filter, checkedPage(page)),
    cancel: async (id, { tx = "own", visibility = {} } = {}) =>
      store.replays.stop(scopes.forAsync(tx), id, visibility, now()),
  };
}

function refuse(pointer: string, message: string): never {
  throw new ValidationError([{ pointer, message }]);
}

/** @throws ValidationError */
function checkInput(input: ReplayInput, retention: RetentionPolicy | null, at: Date): void {
  const { subscriptionId, filter, status } = input;
  checkAll([
    () => (subscriptionId === undefined) !== (filter === undefined) || refuse("/filter", oneOfThem),
    () => subscriptionId === undefined || checkSelection({ subscriptionId }, ""),
    () => filter === undefined || checkSelection(filter, "/filter"),
    () => checkStatuses(status),
    () => checkMissing(input),
    () => checkPeriod(input, retention, at),
  ]);
}

const oneOfThem = "give exactly one of subscription_id and filter";

function checkStatuses(status: readonly ReplayedStatus[]): void {
  if (!Array.isArray(status) || status.length === 0 || status.some((item) => !replayed.includes(item)))
    refuse("/status", `must be a list of ${replayed.join(", ")}, at least one`);
}

/** Of no single subscription "missing" would be every event that any of them did not want. */
function checkMissing({ subscriptionId, filter, status }: ReplayInput): void {
  if (!Array.isArray(status) || !status.includes("missing")) return;
  if ((subscriptionId ?? filter?.subscriptionId) === undefined)
    refuse(
      "/status",
      "missing needs one subscription (subscription_id): which events were not sent can only be told of one endpoint",
    );
  for (const [part, name] of [
    ["errorCode", "error_code"],
    ["urlHost", "url_host"],
    ["replayId", "replay_id"],
  ] as const)
    if (filter?.[part] !== undefined)
      refuse(`/filter/${name}`, "must be absent with missing: an event without a delivery has none");
}

function checkPeriod(
  { since, until, status }: ReplayInput,
  retention: RetentionPolicy | null,
  at: Date,
): void {
  if (!isTime(since)) refuse("/since", "must be a time");
  if (until !== undefined && !isTime(until)) refuse("/until", "must be a time");
  if (since >= at) refuse("/since", "must be in the past");
  if (until && until <= since) refuse("/until", "must be after since");
  if (!retention || !Array.isArray(status)) return;
  // Of those that are kept too short, the shortest says how far back all of them go.
  const [shortest] = [...status].map((item) => keptOf(item, retention)).sort((a, b) => a.ms - b.ms);
  if (!shortest || since.getTime() >= at.getTime() - shortest.ms - slackMs) return;
  const from = new Date(at.getTime() - shortest.ms).toISOString();
  refuse("/since", `is before retention: ${shortest.what} kept ${daysText(shortest.ms)}, so since ${from}`);
}

function keptOf(status: ReplayedStatus, { failedMs, deliveredMs, eventsMs }: RetentionPolicy) {
  if (status === "missing") return { what: "events are", ms: eventsMs };
  return { what: `${status} deliveries are`, ms: status === "failed" ? failedMs : deliveredMs };
}

function daysText(ms: number): string {
  const days = ms / dayMs;
  return `${Number(days.toFixed(2))} ${days === 1 ? "day" : "days"}`;
}

function isTime(value: unknown): value is Date {
  return value instanceof Date && !Number.isNaN(value.getTime());
}
