import { coveringFilters } from "../../model/matching.ts";
import type { SubscriptionStatus } from "../../model/states.ts";
import type { Receiver } from "./receiver.ts";

/** What decides whether a subscription gets an event. */
export interface Phase {
  readonly status: SubscriptionStatus;
  /** Empty = every type. */
  readonly eventTypes: readonly string[];
}

const disabled: Phase = { status: "disabled", eventTypes: [] };

/**
 * A subscription as its owner knows it. Somebody outside cannot always tell which state it is in (a call is under
 * way, or its answer was lost); then every state that it may be in is kept.
 */
export class Subscriber {
  readonly key: string;
  readonly receiver: Receiver;
  readonly ordered: boolean;
  maxInFlight: number | undefined;
  id: string | undefined;
  /** An operation on it is under way, or ended without an answer: nobody begins another before that is known. */
  busy = false;
  /** When replays to it were asked for, and whether they fill in what it never got. */
  readonly replays: { readonly from: number; readonly missing: boolean }[] = [];
  readonly #history: { readonly from: number; readonly possible: readonly Phase[] }[] = [];
  #mayBeDisabled = false;

  constructor(
    key: string,
    receiver: Receiver,
    options: { ordered: boolean; maxInFlight?: number | undefined },
  ) {
    this.key = key;
    this.receiver = receiver;
    this.ordered = options.ordered;
    this.maxInFlight = options.maxInFlight;
  }

  /** From now on it may be in that phase as well. */
  mayBecome(phase: Phase, now: number): void {
    this.#history.push({ from: now, possible: [...(this.#history.at(-1)?.possible ?? []), phase] });
  }

  /** From now on it is known to be in that phase. */
  is(phase: Phase, now: number): void {
    this.#history.push({ from: now, possible: this.#mayBeDisabled ? [phase, disabled] : [phase] });
  }

  /** From now on Hookwell may have disabled it by itself, or may do so any moment. */
  mayBeDisabled(now: number): void {
    if (this.#mayBeDisabled) return;
    this.#mayBeDisabled = true;
    this.mayBecome(disabled, now);
  }

  get current(): Phase | undefined {
    return this.#history.at(-1)?.possible[0];
  }

  /** There may be events since then that match it now, and did not when they were dispatched. */
  mayLack(since: number): boolean {
    const [first] = this.#history;
    const filter = this.current?.eventTypes.join();
    const others = ({ status, eventTypes }: Phase): boolean =>
      status === "disabled" || eventTypes.join() !== filter;
    return (
      first !== undefined &&
      (first.from > since || this.#history.some(({ possible }) => possible.some(others)))
    );
  }

  get deleted(): boolean {
    return this.#history.at(-1)?.possible.some(({ status }) => status === "deleted") ?? false;
  }

  /** Whether an event that was matched some time in this range goes to it. */
  takes(type: string, from: number, until: number): "surely" | "perhaps" | "no" {
    const filters = coveringFilters(type);
    let yes = false;
    let no = this.#history[0] === undefined || this.#history[0].from > from;
    for (const [index, { from: begin, possible }] of this.#history.entries()) {
      const end = this.#history[index + 1]?.from ?? Number.POSITIVE_INFINITY;
      if (end < from || begin > until) continue;
      for (const { status, eventTypes } of possible) {
        const on = status === "active" || status === "paused";
        const matches =
          eventTypes.length === 0
            ? !type.startsWith("hookwell.")
            : eventTypes.some((filter) => filters.includes(filter));
        if (on && matches) yes = true;
        else no = true;
      }
    }
    return yes ? (no ? "perhaps" : "surely") : "no";
  }
}
