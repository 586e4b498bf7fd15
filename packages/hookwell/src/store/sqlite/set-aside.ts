import type { Holdable } from "../../model/hold.ts";
import { asideAt, type HoldsGivenBack } from "../hold-contract.ts";
import { behindLive } from "../ordering.ts";
import type { Connection } from "./connection.ts";
import { type ActiveHold, activeHolds, coveringHold } from "./holds.ts";
import { wakeLanes } from "./lanes.ts";
import { integer, optionalInteger, text } from "./rows.ts";

/** Rows of one lane, and of all lanes, that one claim sets aside: so much longer may it take. */
const mostPerLane = 250;
const mostPerClaim = 1_000;
/** Lanes in which one claim may look in vain while something is held. */
const mostInVain = 1_000;
const lanesPerBatch = 1_000;

const asideText = `
UPDATE hookwell_delivery INDEXED BY hookwell_delivery_id
SET due_at = CASE WHEN due_at < ${behindLive} THEN ${asideAt.live} ELSE ${asideAt.behind} END + CAST(? AS INTEGER)
WHERE id = ?`;
const markText = "INSERT INTO hookwell_hold_lane (seq, subscription_id) VALUES (?, ?) ON CONFLICT DO NOTHING";

/**
 * What one claim does with held rows: it sets them aside as it meets them, behind every due time, so that no claim
 * meets them again, and a lane with nothing else goes to sleep.
 */
export class HeldRows {
  readonly #connection: Connection;
  readonly #holds: readonly ActiveHold[];
  readonly #ofLane = new Map<string, number>();
  readonly #marked = new Set<string>();
  #moved = 0;
  #inVain = 0;

  constructor(connection: Connection, holds: readonly ActiveHold[]) {
    this.#connection = connection;
    this.#holds = holds;
  }

  /** Something is held, so rows must be looked at one by one. */
  get any(): boolean {
    return this.#holds.length > 0;
  }

  /** Rows were set aside: another claim finds what was behind them. */
  get moved(): boolean {
    return this.#moved > 0;
  }

  /** One more lane had nothing to give. True when that were enough for one claim. */
  lookedInVain(): boolean {
    return this.any && ++this.#inVain >= mostInVain;
  }

  /** `left`: a hold covers the row, and this claim may set no more aside. */
  meet(lane: string, row: Holdable & { readonly id: string }): "free" | "aside" | "left" {
    const hold = coveringHold(this.#holds, row);
    if (!hold) return "free";
    const moved = this.#ofLane.get(lane) ?? 0;
    if (moved >= mostPerLane || this.#moved >= mostPerClaim) return "left";
    this.#connection.all(asideText, [hold.seq, row.id]);
    const mark = `${hold.seq} ${lane}`;
    if (!this.#marked.has(mark)) this.#connection.all(markText, [hold.seq, lane]);
    this.#marked.add(mark);
    this.#ofLane.set(lane, moved + 1);
    this.#moved++;
    return "aside";
  }
}

/** The due times of what is set aside for a hold. */
function asideFor(seq: number): [number, number] {
  return [asideAt.live + seq, asideAt.behind + seq];
}

const nextNumberText = "SELECT min(seq) AS seq FROM hookwell_hold_lane WHERE seq > ?";

/** Numbers that rows are set aside for and that are no hold's any more. */
function releasedNumbers(connection: Connection): number[] {
  const active = new Set(activeHolds(connection).map(({ seq }) => seq));
  const released: number[] = [];
  for (let last = 0; ; ) {
    const next = optionalInteger(connection.all(nextNumberText, [last])[0]?.seq);
    if (next === undefined) return released;
    if (!active.has(next)) released.push(next);
    last = next;
  }
}

const lanesText = `
SELECT subscription_id FROM hookwell_hold_lane WHERE seq = ? ORDER BY subscription_id LIMIT CAST(? AS INTEGER)`;
const rowsText = `
SELECT id FROM hookwell_delivery INDEXED BY hookwell_delivery_pending
WHERE subscription_id = ? AND status = 'pending' AND due_at IN (?, ?) LIMIT CAST(? AS INTEGER)`;
// A row whose lease had ended was due at that end.
const backText = `
UPDATE hookwell_delivery INDEXED BY hookwell_delivery_id
SET due_at = coalesce(lease_until, next_attempt_at)
  + CASE WHEN due_at < ${asideAt.behind} THEN 0 ELSE ${behindLive} END
WHERE id = ?`;
const doneText = "DELETE FROM hookwell_hold_lane WHERE seq = ? AND subscription_id = ?";

/** In one short write: rows of released holds are due again as they were, and their lanes awake. */
export async function giveBackHeld(
  connection: Connection,
  limit: number,
  now: number,
): Promise<HoldsGivenBack> {
  // Looked at without a lock first: most of the time there is nothing.
  if (releasedNumbers(connection).length === 0) return { deliveries: 0, more: false };
  return connection.write(() => {
    let deliveries = 0;
    const woken: string[] = [];
    for (const seq of releasedNumbers(connection)) {
      const lanes = connection.all(lanesText, [seq, lanesPerBatch]).map((row) => text(row.subscription_id));
      for (const lane of lanes) {
        const left = limit - deliveries;
        const rows = left > 0 ? connection.all(rowsText, [lane, ...asideFor(seq), left]) : [];
        for (const row of rows) connection.all(backText, [text(row.id)]);
        deliveries += rows.length;
        if (rows.length > 0) woken.push(lane);
        if (rows.length < left) connection.all(doneText, [seq, lane]);
      }
    }
    if (woken.length > 0) connection.run(wakeLanes(woken, now));
    return { deliveries, more: releasedNumbers(connection).length > 0 };
  });
}

const countText = `
SELECT count(*) AS count FROM (
  SELECT 1 FROM hookwell_hold_lane l
  CROSS JOIN hookwell_delivery d INDEXED BY hookwell_delivery_pending
    ON d.subscription_id = l.subscription_id AND d.due_at IN (?, ?) AND d.status = 'pending'
  WHERE l.seq = ? LIMIT CAST(? AS INTEGER))`;

export function countToGiveBack(connection: Connection, max: number): number {
  let count = 0;
  for (const seq of releasedNumbers(connection))
    count += integer(connection.all(countText, [...asideFor(seq), seq, max])[0]!.count);
  return Math.min(count, max);
}
