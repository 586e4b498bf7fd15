import type { SideEffectsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import type { Step, StepLane } from "./step.ts";

export interface StepQueueDeps {
  readonly db: AppDatabase;
  readonly now: () => Date;
}

/** The steps that wait, shared by every process on one database. */
export interface StepQueue {
  /** Steps that are due and whose turn it is; each is this caller's until the lease ends, and counts as a try. */
  claim(lanes: readonly StepLane[], limit: number, leaseMs: number): Promise<Step[]>;
  finish(step: Step, outcome: StepOutcome): Promise<boolean>;
}

export type StepOutcome =
  | { readonly status: "done" }
  | { readonly status: "skipped" | "failed"; readonly reason: string }
  /** Tries again at `runAt`. */
  | { readonly status: "waiting"; readonly reason: string; readonly runAt: Date };

const claimed = ["id", "booking_id", "revision", "sequence", "lane", "kind", "target", "attempts"] as const;
type Candidate = Pick<SideEffectsTable, (typeof claimed)[number] | "detail">;

export function stepQueue({ db, now }: StepQueueDeps): StepQueue {
  return {
    async claim(lanes, limit, leaseMs) {
      const at = now();
      const steps: Step[] = [];
      for (const candidate of await due(db, lanes, limit, at.toISOString())) {
        const leaseUntil = new Date(at.getTime() + leaseMs).toISOString();
        try {
          if (await take(db, candidate, at.toISOString(), leaseUntil)) steps.push(asStep(candidate));
        } catch (error) {
          // What was taken is done first; a fault that stays comes up again.
          if (steps.length === 0) throw error;
          break;
        }
      }
      return steps;
    },
    async finish(step, outcome) {
      const { numUpdatedRows } = await db
        .updateTable("side_effects")
        .set({
          status: outcome.status,
          lease_until: null,
          last_error: outcome.status === "done" ? null : outcome.reason,
          ...(outcome.status === "waiting" ? { run_at: outcome.runAt.toISOString() } : {}),
          updated_at: now().toISOString(),
        })
        // Not when the lease ended and another one took it, or the booking has moved on.
        .where("id", "=", step.id)
        .where("status", "=", "waiting")
        .where("attempts", "=", step.attempts)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },
  };
}

/** How long a mail waits for a calendar that is slow or has much to do. */
const linkPatienceMs = 20_000;

/**
 * Steps of one booking and target go one at a time. A calendar shows the last change only, so earlier ones give way.
 * Mails go in their order, but one that failed gives way to a later one: nobody is told an old time after the new.
 */
function due(db: AppDatabase, lanes: readonly StepLane[], limit: number, now: string): Promise<Candidate[]> {
  const patient = new Date(Date.parse(now) - linkPatienceMs).toISOString();
  return (
    db
      .selectFrom("side_effects as step")
      .select([...claimed.map((name) => `step.${name}` as const), "step.detail"])
      .where("step.status", "=", "waiting")
      .where("step.run_at", "<=", now)
      .where("step.lane", "in", [...lanes])
      .where((where) =>
        where.or([where("step.lease_until", "is", null), where("step.lease_until", "<=", now)]),
      )
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("side_effects as earlier")
              .select("earlier.id")
              .whereRef("earlier.booking_id", "=", "step.booking_id")
              .whereRef("earlier.lane", "=", "step.lane")
              .whereRef("earlier.target", "=", "step.target")
              .whereRef("earlier.sequence", "<", "step.sequence")
              .where("earlier.status", "=", "waiting")
              .where((where) =>
                where.or([
                  where("earlier.lease_until", ">", now),
                  where.and([where("earlier.lane", "=", "mail"), where("earlier.attempts", "=", 0)]),
                ]),
              ),
          ),
        ),
      )
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("side_effects as later")
              .select("later.id")
              .whereRef("later.booking_id", "=", "step.booking_id")
              .whereRef("later.lane", "=", "step.lane")
              .whereRef("later.target", "=", "step.target")
              .whereRef("later.sequence", ">", "step.sequence")
              .where("later.status", "=", "waiting")
              .where((where) =>
                where.or([
                  where("step.lane", "=", "calendar"),
                  where.and([where("step.lane", "=", "mail"), where("step.attempts", ">", 0)]),
                ]),
              ),
          ),
        ),
      )
      // A mail waits a while for the first answer of the calendar, which may bring the meeting link; not for a second.
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("side_effects as calendar")
              .select("calendar.id")
              .where("step.lane", "=", "mail")
              .whereRef("calendar.booking_id", "=", "step.booking_id")
              .whereRef("calendar.sequence", "=", "step.sequence")
              .where("calendar.lane", "=", "calendar")
              .where("calendar.status", "=", "waiting")
              .where("calendar.created_at", ">", patient)
              .where((where) =>
                where.or([
                  where("calendar.attempts", "=", 0),
                  where.and([where("calendar.attempts", "=", 1), where("calendar.lease_until", ">", now)]),
                ]),
              ),
          ),
        ),
      )
      .orderBy("step.run_at")
      .orderBy("step.sequence")
      .orderBy("step.id")
      .limit(limit)
      .execute()
  );
}

/** The conditional UPDATE decides between two processes. What came before it in its lane is given up with it. */
function take(db: AppDatabase, step: Candidate, now: string, leaseUntil: string): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const { numUpdatedRows } = await trx
      .updateTable("side_effects")
      .set({ attempts: step.attempts + 1, lease_until: leaseUntil, updated_at: now })
      .where("id", "=", step.id)
      .where("status", "=", "waiting")
      .where("attempts", "=", step.attempts)
      .where((where) => where.or([where("lease_until", "is", null), where("lease_until", "<=", now)]))
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) return false;
    await trx
      .updateTable("side_effects")
      .set({ status: "skipped", last_error: "a later change came first", lease_until: null, updated_at: now })
      .where("booking_id", "=", step.booking_id)
      .where("lane", "=", step.lane)
      .where("target", "=", step.target)
      .where("sequence", "<", step.sequence)
      .where("status", "=", "waiting")
      .execute();
    return true;
  });
}

function asStep(row: Candidate): Step {
  return {
    id: row.id,
    bookingId: row.booking_id,
    revision: row.revision,
    sequence: row.sequence,
    kind: row.kind,
    lane: row.lane,
    target: row.target,
    attempts: row.attempts + 1,
    detail: row.detail,
    // Only the plan writes these rows.
  } as Step;
}
