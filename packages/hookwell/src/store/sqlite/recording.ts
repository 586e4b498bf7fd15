import type { Delivery, Outcome } from "../../model/delivery.ts";
import { HookwellError } from "../../model/errors.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Logger } from "../../model/observe.ts";
import type { Now, RecordResult } from "../contract.ts";
import type { Look } from "./last-look.ts";
import { recordOutcomes } from "./record.ts";
import type { Session } from "./session.ts";

const damaged = "The stored body or endpoint version of this delivery is missing or damaged.";

/** Records outcomes in batches. */
export class Recording {
  readonly #session: Session;
  readonly #logger: Logger | undefined;

  constructor(session: Session, logger: Logger | undefined) {
    this.#session = session;
    this.#logger = logger;
  }

  /** A batch that fails is halved until the outcome at fault is found; that one is reported and left out. */
  async record(outcomes: readonly Outcome[], now: Now, policy: LanePolicy = {}): Promise<RecordResult> {
    const connection = await this.#session.ready();
    try {
      const { bad, ...result } = await connection.write(() =>
        recordOutcomes(connection, outcomes, this.#session.now(now), policy),
      );
      for (const id of bad) this.#report(id, "it has a time or number that is none");
      return result;
    } catch (error) {
      if (error instanceof HookwellError) throw error;
      if (outcomes.length === 1) {
        this.#report(outcomes[0]!.id, error instanceof Error ? error.message : String(error));
        return { recorded: [], stale: [], lanes: [] };
      }
      const middle = outcomes.length >> 1;
      const first = await this.record(outcomes.slice(0, middle), now, policy);
      const second = await this.record(outcomes.slice(middle), now, policy);
      return {
        recorded: [...first.recorded, ...second.recorded],
        stale: [...first.stale, ...second.stale],
        lanes: [...first.lanes, ...second.lanes],
        ...((first.readied || second.readied) && { readied: true as const }),
      };
    }
  }

  /** Ends the claim of rows that the last look found must not, or cannot, be sent; answers those that failed. */
  async giveUp({ inactive, unreadable }: Look, now: Now): Promise<Delivery[]> {
    if (inactive.length + unreadable.length === 0) return [];
    const cause = { reason: "unreadable", errorCode: "unreadable", error: damaged } as const;
    for (const { id } of unreadable) this.#logger?.error(`Delivery ${id} failed unsent. ${damaged}`);
    const { recorded } = await this.record(
      [
        ...inactive.map((claim): Outcome => ({ ...claim, kind: "released" })),
        ...unreadable.map(
          ({ id, leaseToken }): Outcome => ({ id, leaseToken: leaseToken!, kind: "failed", ...cause }),
        ),
      ],
      now,
    );
    const counted = new Map(recorded.map((row) => [row.id, row]));
    return unreadable.flatMap(({ leaseToken: _token, leaseUntil: _until, ...row }) => {
      const { status, attempts } = counted.get(row.id) ?? row;
      return status === "failed" ? [{ ...row, status, attempts, lastError: damaged }] : [];
    });
  }

  #report(id: string, why: string): void {
    this.#logger?.error(
      `The outcome of delivery ${id} cannot be recorded (${why}); it is sent again after its lease.`,
    );
  }
}
