import type { Row, Statement } from "../../adapters/seam.ts";
import type { Exchange, Outcome } from "../../model/delivery.ts";
import { HookwellError, NotFoundError } from "../../model/errors.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Logger } from "../../model/observe.ts";
import type { DeliveryStatus } from "../../model/states.ts";
import type { RecordResult } from "../contract.ts";
import type { LaneChange } from "../lane-state.ts";
import { storable } from "../storable.ts";
import { type Database, roundedCount } from "./database.ts";
import { isBadValue } from "./failures.ts";
import { lockOrder, settleOrder } from "./ordering.ts";
import { recordDelivered } from "./record-delivered.ts";
import { recordTexts } from "./record-sql.ts";
import { flag, integer, optionalText, text } from "./rows.ts";

type Recorded = RecordResult["recorded"][number];

interface Batch {
  readonly recorded: readonly Recorded[];
  readonly unrecorded: ReadonlySet<string>;
  readonly lanes: RecordResult["lanes"];
  readonly readied: boolean;
}

/** An outcome with its place in the call. */
interface Numbered {
  readonly outcome: Outcome;
  readonly ord: number;
}

/**
 * Records outcomes in one statement. One that no database can keep is left out, stays claimed and is reported;
 * if the database finds one that this did not foresee, the batch is halved until it stands alone.
 */
export async function recordOutcomes(
  db: Database,
  outcomes: readonly Outcome[],
  now: string | null,
  logger: Logger | undefined,
  policy: LanePolicy = {},
): Promise<RecordResult> {
  const stale: Numbered[] = [];
  const open: Numbered[] = [];
  const known = new Set<string>();
  for (const [ord, outcome] of outcomes.entries()) {
    // Of two outcomes for one row the first ends its lease.
    if (known.has(outcome.id)) stale.push({ outcome, ord });
    else open.push({ outcome, ord });
    known.add(outcome.id);
  }
  const report = (outcome: Outcome, why: string): void =>
    logger?.error(
      `hookwell: the outcome of delivery ${outcome.id} could not be recorded (${why}); it is tried again when its lease ends.`,
    );
  const { recorded, unrecorded, lanes, readied } = await recordBatch(
    db,
    open,
    now,
    policyJson(policy),
    report,
  );
  const counted = new Set(recorded.map(({ id }) => id));
  for (const item of open)
    if (!counted.has(item.outcome.id) && !unrecorded.has(item.outcome.id)) stale.push(item);
  return {
    recorded,
    stale: stale.sort((a, b) => a.ord - b.ord).map(({ outcome }) => outcome.id),
    lanes,
    ...(readied && { readied }),
  };
}

async function recordBatch(
  db: Database,
  batch: readonly Numbered[],
  now: string | null,
  policy: string,
  report: (outcome: Outcome, why: string) => void,
): Promise<Batch> {
  if (batch.length === 0) return { recorded: [], unrecorded: new Set(), lanes: [], readied: false };
  try {
    const { rows, readied } = await db.slots.use((slot) =>
      runRecord(db, batch, statement(db.schema, batch, now, policy, slot), now, slot),
    );
    const recorded = rows
      .filter((row) => optionalText(row, "id") !== undefined)
      .map((row) => ({
        id: text(row, "id"),
        status: text(row, "status") as DeliveryStatus,
        attempts: integer(row, "attempts"),
      }));
    const changes = rows.flatMap((row) => {
      const change = optionalText(row, "change") as LaneChange | "freed" | undefined;
      return change ? [{ subscriptionId: text(row, "lane"), change }] : [];
    });
    const lanes = changes.filter((entry): entry is RecordResult["lanes"][number] => entry.change !== "freed");
    return { recorded, unrecorded: new Set(), lanes, readied: readied || lanes.length < changes.length };
  } catch (error) {
    if (!isBadValue(error instanceof HookwellError ? error.cause : error)) throw error;
    if (batch.length === 1) {
      report(batch[0]!.outcome, error instanceof Error ? error.message : String(error));
      return { recorded: [], unrecorded: new Set([batch[0]!.outcome.id]), lanes: [], readied: false };
    }
    const middle = Math.ceil(batch.length / 2);
    const first = await recordBatch(db, batch.slice(0, middle), now, policy, report);
    const second = await recordBatch(db, batch.slice(middle), now, policy, report);
    return {
      recorded: [...first.recorded, ...second.recorded],
      unrecorded: new Set([...first.unrecorded, ...second.unrecorded]),
      lanes: [...first.lanes, ...second.lanes],
      readied: first.readied || second.readied,
    };
  }
}

/** Rows that have a place in an order change together with their groups. */
async function runRecord(
  db: Database,
  batch: readonly Numbered[],
  record: Statement,
  now: string | null,
  slot: string,
): Promise<{ readonly rows: readonly Row[]; readonly readied: boolean }> {
  const ids = batch.filter(({ outcome }) => isOrdered(outcome.leaseToken)).map(({ outcome }) => outcome.id);
  if (ids.length === 0) {
    const rows = await recordDelivered(
      db,
      batch.map(({ outcome }) => outcome),
      now,
      slot,
    );
    return { rows: rows ?? (await db.hot(record)), readied: false };
  }
  return await db.program({ kind: "own" }, function* () {
    yield* lockOrder(
      db.schema,
      batch.map(({ outcome }) => outcome.id),
    );
    const rows = yield record;
    return { rows, readied: yield* settleOrder(db.schema, ids, now) };
  });
}

/** The claim writes it into the token. */
function isOrdered(leaseToken: string | undefined): boolean {
  return leaseToken?.includes("~") ?? false;
}

function statement(
  schema: string,
  batch: readonly Numbered[],
  now: string | null,
  policy: string,
  slot: string,
): Statement {
  return {
    text: recordTexts(schema).outcomes(roundedCount(batch.length)),
    params: [now, JSON.stringify(batch.map(({ outcome, ord }) => outcomeJson(outcome, ord))), policy, slot],
  };
}

function policyJson({ breaker, disable, report }: LanePolicy): string {
  return JSON.stringify({
    counted: breaker !== undefined || disable !== undefined,
    breaker: breaker !== undefined,
    break_failures: breaker?.failures,
    probe_ms: breaker?.probeMs,
    probe_max_ms: breaker?.probeMaxMs,
    disable: disable !== undefined,
    disable_failures: disable?.failures,
    disable_ms: disable?.overMs,
    report: report === true,
  });
}

/** Numbers travel as text: JSON would turn one that is not finite into null, and the database refuses the text. */
function outcomeJson(outcome: Outcome, ord: number) {
  const exchange = "exchange" in outcome ? outcome.exchange : undefined;
  const failure =
    outcome.kind === "failed"
      ? { error_code: kept(outcome.errorCode), last_error: kept(outcome.error), reason: kept(outcome.reason) }
      : outcome.kind === "retry" || outcome.kind === "gone"
        ? { error_code: kept(exchange?.errorCode), last_error: kept(exchange?.error) }
        : {};
  return {
    ord,
    id: outcome.id,
    token: outcome.leaseToken,
    kind: outcome.kind,
    sent: exchange !== undefined,
    breakable: "breakable" in outcome && outcome.breakable === true,
    ...(outcome.kind === "retry" && { delay_ms: whole(outcome.delayMs) }),
    ...("holdLaneMs" in outcome && { hold_ms: whole(outcome.holdLaneMs) }),
    ...failure,
    ...(exchange && exchangeJson(exchange)),
  };
}

function exchangeJson(exchange: Exchange) {
  return {
    started_at: whole(exchange.startedAt.getTime()),
    duration_ms: whole(exchange.durationMs),
    status_code: whole(exchange.statusCode),
    attempt_code: kept(exchange.errorCode),
    attempt_error: kept(exchange.error),
    excerpt: kept(exchange.excerpt),
  };
}

function whole(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(Math.round(value));
}

function kept(value: string | undefined): string | undefined {
  return value === undefined ? undefined : storable(value);
}

/** A mark of the reference contract. */
export interface Mark {
  readonly id: string;
  readonly leaseToken: string | undefined;
  readonly status: DeliveryStatus;
  readonly reason?: string;
  /** When it was delivered. Absent = now. */
  readonly at?: Date;
  /** Absent = the claim's count, or one more where the send was made without a claim. */
  readonly attempts?: number;
  readonly lastError?: string;
  readonly nextAttemptAt?: Date;
}

/** True when it counted. @throws NotFoundError */
export async function markDelivery(db: Database, mark: Mark, now: string | null): Promise<boolean> {
  const marking = (slot: string): Statement => ({
    text: recordTexts(db.schema).mark,
    params: [
      now,
      JSON.stringify({
        id: mark.id,
        token: mark.leaseToken ?? null,
        status: mark.status,
        reason: mark.reason ?? null,
        at: mark.at?.getTime() ?? null,
        attempts: mark.attempts ?? null,
        last_error: kept(mark.lastError) ?? null,
        next_attempt_at: mark.nextAttemptAt?.getTime() ?? null,
      }),
      slot,
    ],
  });
  const [row] = await db.slots.use((slot) =>
    isOrdered(mark.leaseToken)
      ? db.program({ kind: "own" }, function* () {
          yield* lockOrder(db.schema, [mark.id]);
          const rows = yield marking(slot);
          yield* settleOrder(db.schema, [mark.id], now);
          return rows;
        })
      : db.run(marking(slot)),
  );
  if (!row || !flag(row, "known")) throw new NotFoundError("delivery", mark.id);
  if (flag(row, "guarded"))
    await db.run({
      text: recordTexts(db.schema).marked,
      params: [now, mark.id, String(mark.status === "delivered")],
    });
  return flag(row, "counted");
}
