import fc from "fast-check";
import type { ReplayedStatus } from "../../src/model/replay.ts";

const lane = fc.nat(3);
const event = fc.nat(7);
const pick = fc.nat(50);
const delay = fc.constantFrom(0, 1, 50, 1_000, 30_000, 60_000);

const held = fc.constantFrom("all", "live", "other", "user.*", "user.created", "booking.created");

/** The fields of an event follow from its number and content, as its content hash covers them. */
const capturedEvent = fc.record({
  event,
  content: fc.constantFrom(0, 0, 0, 1),
  emit: fc.boolean(),
});

const outcome = fc.record({
  claim: pick,
  kind: fc.constantFrom("delivered", "retry", "failed", "lost", "gone", "released"),
  token: fc.constantFrom("right", "right", "right", "stale"),
  delay,
  hold: fc.constantFrom(undefined, undefined, 500, 60_000),
  breakable: fc.boolean(),
});

/** One call on a store. Numbers stand for small sets of ids, so that calls meet each other. */
const command = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("subscribe"),
      lane,
      types: fc.constantFrom([], ["user.*"], ["user.created", "booking.created"]),
      tenant: fc.constantFrom(undefined, "acme", "other"),
      owner: fc.constantFrom(undefined, undefined, "u1"),
      rate: fc.constantFrom(undefined, undefined, { limit: 2, perSeconds: 1 }, { limit: 50, perSeconds: 1 }),
      ordering: fc.constantFrom("none", "subject"),
      inFlight: fc.constantFrom(undefined, undefined, 1, 3),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("addSubscription"),
      lane,
      active: fc.constantFrom(true, true, false),
      version: fc.nat(2),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("update"),
      lane,
      change: fc.constantFrom("url", "headers", "types", "text", "limits", "order", "merge", "nothing"),
      version: fc.nat(2),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("rotate"),
      lane,
      version: fc.nat(4),
      overlapMs: fc.constantFrom(0, 1_000, 60_000, 86_400_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("status"),
      lane,
      status: fc.constantFrom("active", "active", "paused", "disabled", "deleted"),
      from: fc.constantFrom(undefined, undefined, "paused", "disabled"),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("enqueue"),
      row: fc.nat(9),
      event,
      lane,
      due: fc.integer({ min: -2, max: 2 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("capture"),
      events: fc.array(capturedEvent, { minLength: 1, maxLength: 3 }),
      within: fc.constantFrom("own", "commit", "rollback"),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("dispatch"),
      limit: fc.integer({ min: 1, max: 4 }),
      claims: fc.option(
        fc.record({
          limit: fc.integer({ min: 1, max: 6 }),
          room: fc.integer({ min: 0, max: 3 }),
          leaseMs: fc.constantFrom(1_000, 30_000),
        }),
        { nil: undefined },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("failDispatch"),
      event,
      retry: fc.constantFrom(null, 0, 1_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("release"), event }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("claim"),
      limit: fc.integer({ min: 0, max: 6 }),
      follow: fc.boolean(),
      room: fc.constantFrom(undefined, 1, 2),
      rooms: fc.array(fc.tuple(lane, fc.nat(2)), { maxLength: 2 }),
      leaseMs: fc.constantFrom(1_000, 30_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("claimDue"), limit: fc.integer({ min: 0, max: 4 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("record"),
      outcomes: fc.array(outcome, { minLength: 1, maxLength: 4 }),
      policy: fc.constantFrom("none", "breaker", "full", "full"),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("mark"),
      kind: fc.constantFrom("delivered", "reschedule", "failed"),
      claim: pick,
      token: fc.constantFrom("right", "stale", "missing"),
      delay,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("retry"), row: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel"), row: pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("hold"), what: held }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("unhold"), what: held, giveBack: fc.constantFrom(1, 100) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("replay"),
      lane: fc.option(lane, { nil: undefined }),
      statuses: fc.constantFrom<ReplayedStatus[]>(
        ["failed"],
        ["failed", "delivered", "cancelled"],
        ["missing"],
        ["failed", "missing"],
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("advance"), pending: fc.constantFrom(1, 3, 100) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("fill"), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stop"), replay: fc.nat(3) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("cancelMany"),
      lane: fc.option(lane, { nil: undefined }),
      type: fc.constantFrom(undefined, "user.created"),
      dryRun: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("maintain"), policy: fc.constantFrom("none", "short", "long") }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("step"),
      ms: fc.constantFrom(1, 50, 1_000, 29_999, 30_000, 60_000, 86_400_000, 2_592_000_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("request"),
      key: fc.nat(1),
      content: fc.constantFrom(0, 0, 0, 1),
      repeatable: fc.boolean(),
      leaseMs: fc.constantFrom(1_000, 30_000),
      end: fc.constantFrom("finish", "finish", "abandon", "late", "never"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart") }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("look"),
      status: fc.constantFrom(undefined, "pending", "failed"),
      outcome: fc.constantFrom(undefined, "pending", "held", "delivered", "unmatched"),
      tenant: fc.constantFrom(undefined, "acme"),
      limit: fc.integer({ min: 1, max: 5 }),
    }),
  },
);

export type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

/** Sequences of calls, long enough that something has happened before something else. */
export const commands: fc.Arbitrary<Command[]> = fc.array(command, {
  minLength: 5,
  maxLength: 40,
  size: "max",
});
