import type { Outcome } from "../model/delivery.ts";
import { defaultBreaker, type LanePolicy } from "../model/lane-policy.ts";
import type { RateLimit } from "../model/subscription.ts";

/**
 * What a lane remembers between claims. Times are epoch milliseconds. The memory and SQLite stores use these
 * functions; PostgreSQL has the same rules in SQL, and the contract suite compares them.
 */
export interface LaneState {
  /** End of a Retry-After; 0 = none. */
  readonly holdUntil: number;
  /** Failed attempts in a row. */
  readonly failures: number;
  /** When the first of them was recorded. */
  readonly failingSince?: number;
  /** Breakable failures in a row. */
  readonly breaks: number;
  readonly open?: OpenCircuit;
  /** Theoretical arrival time of the cell rate, in microseconds; 0 = never sent. */
  readonly rateTat: number;
  /** Deliveries in flight under `max_in_flight`, and when their lease ends. */
  readonly slots: Readonly<Record<string, number>>;
  /** Before this no claim looks at the lane: breaker, rate, or every slot taken. */
  readonly blockedUntil: number;
  /** When a failed delivery was last told of, and how many failed since. */
  readonly reportedAt?: number;
  readonly unreported: number;
}

export interface OpenCircuit {
  readonly since: number;
  /** Wait before the next probe; doubled when it fails. */
  readonly stepMs: number;
  readonly probeAt: number;
  /** Delivery that is in flight as the probe. */
  readonly probeId?: string;
}

/** The limits of a subscription that hold over all replicas. */
export interface LaneLimits {
  readonly maxInFlight?: number | undefined;
  readonly rateLimit?: RateLimit | undefined;
}

export const freshLane: LaneState = {
  holdUntil: 0,
  failures: 0,
  breaks: 0,
  rateTat: 0,
  slots: {},
  blockedUntil: 0,
  unreported: 0,
};

/** What one outcome says about its lane. */
export interface LaneOutcome {
  readonly id: string;
  readonly kind: "success" | "failure" | "released" | "other";
  readonly breakable: boolean;
}

export function laneOutcome(outcome: Outcome): LaneOutcome {
  const { id } = outcome;
  const breakable = "breakable" in outcome && outcome.breakable === true;
  switch (outcome.kind) {
    case "delivered":
      return { id, kind: "success", breakable };
    case "retry":
      return { id, kind: "failure", breakable };
    case "failed":
      // Without an exchange nothing was sent.
      return { id, kind: outcome.exchange ? "failure" : "released", breakable };
    case "gone":
      return { id, kind: "other", breakable };
    case "released":
      return { id, kind: "released", breakable };
  }
}

export type LaneChange = "opened" | "closed" | "disabled";

/** Most of a rate's sends that may go at the same instant, as the time they take at that rate. */
const burstMs = 50;

interface Cells {
  readonly burst: number;
  readonly intervalUs: number;
}

/**
 * At most `limit` sends in any `perSeconds`, also across the end of a burst: so many cells as fit 50 ms may go at
 * once, and the interval is stretched by what they would add.
 */
function cellsOf({ limit, perSeconds }: RateLimit): Cells {
  const perMs = perSeconds * 1_000;
  const burst = Math.min(limit, Math.max(1, Math.ceil((limit * burstMs) / perMs)));
  return { burst, intervalUs: Math.ceil((perMs * 1_000) / (limit - burst + 1)) };
}

/** When the rate lets the next send go; 0 without a rate. */
export function rateFreeAt(lane: Pick<LaneState, "rateTat">, { rateLimit }: LaneLimits): number {
  if (!rateLimit) return 0;
  const { burst, intervalUs } = cellsOf(rateLimit);
  return Math.max(0, Math.ceil((lane.rateTat - (burst - 1) * intervalUs) / 1_000));
}

/** True when a claim must look at the lane's state, and write it. */
export function isGuarded(lane: LaneState, limits: LaneLimits): boolean {
  return lane.open !== undefined || limits.maxInFlight !== undefined || limits.rateLimit !== undefined;
}

function blocked(lane: LaneState, limits: LaneLimits, now: number): LaneState {
  const taken = Object.values(lane.slots).filter((until) => until > now);
  const full = limits.maxInFlight !== undefined && taken.length >= limits.maxInFlight;
  const until = Math.max(
    lane.open?.probeAt ?? 0,
    rateFreeAt(lane, limits),
    full ? taken.reduce((a, b) => Math.min(a, b)) : 0,
  );
  return { ...lane, blockedUntil: until };
}

/** Nothing of the lane is sent before this. */
export function restsUntil(lane: LaneState): number {
  return Math.max(lane.holdUntil, lane.blockedUntil);
}

/** How many rows a claim may take at most. */
export function policyRoom(lane: LaneState, limits: LaneLimits, now: number): number {
  let room = Number.MAX_SAFE_INTEGER;
  if (lane.open) room = lane.open.probeAt <= now ? 1 : 0;
  if (limits.rateLimit) {
    const { burst, intervalUs } = cellsOf(limits.rateLimit);
    const ahead = Math.max(lane.rateTat - now * 1_000, 0);
    room = Math.min(room, burst - Math.ceil(ahead / intervalUs));
  }
  if (limits.maxInFlight !== undefined) {
    const taken = Object.values(lane.slots).filter((until) => until > now).length;
    room = Math.min(room, limits.maxInFlight - taken);
  }
  return Math.max(room, 0);
}

/** After a claim took these rows, with leases until then. */
export function afterClaim(
  lane: LaneState,
  limits: LaneLimits,
  ids: readonly string[],
  leaseUntil: number,
  now: number,
): LaneState {
  if (ids.length === 0) return lane;
  const next = { ...lane };
  if (lane.open) next.open = { ...lane.open, probeAt: leaseUntil, probeId: ids[0]! };
  if (limits.rateLimit)
    next.rateTat = Math.max(lane.rateTat, now * 1_000) + ids.length * cellsOf(limits.rateLimit).intervalUs;
  if (limits.maxInFlight !== undefined)
    next.slots = Object.fromEntries([
      ...Object.entries(lane.slots).filter(([, until]) => until > now),
      ...ids.map((id) => [id, leaseUntil] as const),
    ]);
  return blocked(next, limits, now);
}

/** True when outcomes without a failure leave the lane as it is. */
export function isClean(lane: LaneState): boolean {
  return lane.failures === 0 && lane.breaks === 0 && !lane.open && Object.keys(lane.slots).length === 0;
}

/**
 * After outcomes of one batch, in their order: of the failures those count that came after the last success. A
 * batch with a success closes an open circuit; what failed after it may open it anew.
 */
export function afterOutcomes(
  lane: LaneState,
  limits: LaneLimits,
  outcomes: readonly LaneOutcome[],
  policy: LanePolicy,
  now: number,
  active: boolean,
): { readonly lane: LaneState; readonly changes: readonly LaneChange[] } {
  const lastSuccess = outcomes.findLastIndex(({ kind }) => kind === "success");
  const succeeded = lastSuccess >= 0;
  const failed = outcomes.slice(lastSuccess + 1).filter(({ kind }) => kind === "failure");
  const lastUnbreakable = failed.findLastIndex(({ breakable }) => !breakable);
  const breaking = failed.length - 1 - lastUnbreakable;
  const counted = policy.breaker !== undefined || policy.disable !== undefined;

  const before = succeeded ? 0 : lane.failures;
  const failures = counted ? before + failed.length : before;
  const since = succeeded ? undefined : lane.failingSince;
  const failingSince = failures === 0 ? undefined : (since ?? now);
  const unbroken = succeeded || lastUnbreakable >= 0 ? 0 : lane.breaks;
  const breaks = policy.breaker ? unbroken + breaking : unbroken;

  const wasOpen = lane.open !== undefined;
  let open = succeeded ? undefined : lane.open;
  if (open) open = afterProbe(open, outcomes, policy, now);
  else if (policy.breaker && breaks >= policy.breaker.failures) {
    const { probeMs } = policy.breaker;
    open = { since: now, stepMs: probeMs, probeAt: now + probeMs };
  }
  const done = new Set(outcomes.map(({ id }) => id));
  const slots = Object.fromEntries(Object.entries(lane.slots).filter(([id]) => !done.has(id)));
  const { holdUntil, rateTat, reportedAt, unreported } = lane;
  const state: LaneState = {
    unreported,
    ...(reportedAt !== undefined && { reportedAt }),
    holdUntil,
    rateTat,
    failures,
    breaks,
    slots,
    blockedUntil: 0,
    ...(failingSince !== undefined && { failingSince }),
    ...(open && { open }),
  };
  const next = blocked(state, limits, now);
  const { disable } = policy;
  const disables =
    active &&
    disable !== undefined &&
    failed.length > 0 &&
    failures >= disable.failures &&
    (failingSince ?? now) <= now - disable.overMs;
  const changes: LaneChange[] = [];
  if (wasOpen !== (open !== undefined)) changes.push(open ? "opened" : "closed");
  if (disables) changes.push("disabled");
  return { lane: next, changes };
}

function afterProbe(
  open: OpenCircuit,
  outcomes: readonly LaneOutcome[],
  { breaker = defaultBreaker }: LanePolicy,
  now: number,
): OpenCircuit {
  const { since, stepMs, probeId } = open;
  const probe = outcomes.find(({ id }) => id === probeId);
  if (!probe) return open;
  // Given back unsent: it was no probe.
  if (probe.kind === "released") return { since, stepMs, probeAt: now };
  const longer = Math.min(stepMs * 2, breaker.probeMaxMs);
  return { since, stepMs: longer, probeAt: now + longer };
}

/** After its limits were changed: they begin anew. */
export function withNewLimits(lane: LaneState): LaneState {
  return { ...lane, rateTat: 0, blockedUntil: lane.open?.probeAt ?? 0 };
}

/** After its subscription was enabled, or got another url: nothing is known of the receiver. */
export function forgiven(lane: LaneState): LaneState {
  const { failingSince: _since, open: _open, ...rest } = lane;
  return { ...rest, failures: 0, breaks: 0, blockedUntil: 0 };
}

/** The time that a subscription was paused does not count towards its disabling. */
export function afterPause(lane: LaneState, pausedMs: number): LaneState {
  return lane.failingSince === undefined ? lane : { ...lane, failingSince: lane.failingSince + pausedMs };
}

/** True when fewer places are taken. */
export function freesPlace(before: LaneState, after: LaneState): boolean {
  return Object.keys(after.slots).length < Object.keys(before.slots).length;
}

/** After a reference mark on a guarded lane, whose worker counts nothing: the slot is free, a success closes. */
export function afterMark(
  lane: LaneState,
  limits: LaneLimits,
  id: string,
  delivered: boolean,
  now: number,
): LaneState {
  const { [id]: _freed, ...slots } = lane.slots;
  const next = delivered ? forgiven(lane) : lane;
  return blocked({ ...next, slots }, limits, now);
}
