import { type Row, runProgramSync } from "../../adapters/seam.ts";
import type { Delivery } from "../../model/delivery.ts";
import type { MaintenanceResult, RetentionPolicy } from "../contract.ts";
import { type HeldRow, heldTooLong, reportFailures } from "../lane-news.ts";
import { Tally } from "../minute-counts.ts";
import { operationalInput } from "../operational.ts";
import { captureProgram } from "./capture.ts";
import type { Connection } from "./connection.ts";
import { deliveryColumns, deliveryJoins, toUnreadable } from "./delivery-rows.ts";
import { readLane } from "./lane-rows.ts";
import type { Endpoints } from "./last-look.ts";
import { countMinute, dropCounts } from "./minute-counts.ts";
import { Pruning } from "./pruning.ts";
import { pruneRequests } from "./requests.ts";
import { text } from "./rows.ts";
import { giveBackHeld } from "./set-aside.ts";

// Rows that a send is using now are left to its outcome, or to the end of their lease.
const waiting = "d.status = 'pending' AND (d.lease_until IS NULL OR d.lease_until <= ?)";

const closingText = `
SELECT d.id, CASE s.status WHEN 'deleted' THEN 'deleted' ELSE 'gone' END AS reason
FROM hookwell_lane l INDEXED BY hookwell_lane_closing
CROSS JOIN hookwell_subscription s ON s.id = l.subscription_id
CROSS JOIN hookwell_delivery d INDEXED BY hookwell_delivery_pending ON d.subscription_id = l.subscription_id
WHERE l.held = 2 AND ${waiting}
LIMIT CAST(? AS INTEGER)`;

const cancelText = `
UPDATE hookwell_delivery SET status = 'cancelled', reason = ?, lease_token = NULL, lease_until = NULL,
  updated_at = ?
WHERE id = ?`;

// A closing lane without pending rows needs no more looks. One that gets a row later is made anew, closing.
const closedText = `
DELETE FROM hookwell_lane WHERE held = 2 AND subscription_id IN (
  SELECT l.subscription_id FROM hookwell_lane l INDEXED BY hookwell_lane_closing
  WHERE l.held = 2 AND NOT EXISTS (
    SELECT 1 FROM hookwell_delivery d INDEXED BY hookwell_delivery_pending
    WHERE d.subscription_id = l.subscription_id AND d.status = 'pending')
  LIMIT CAST(? AS INTEGER))`;

const heldText = `
SELECT d.id, d.project_id, d.subscription_id, d.event_id, d.type, s.status_reason AS reason
FROM hookwell_subscription s INDEXED BY hookwell_subscription_off
CROSS JOIN hookwell_delivery d INDEXED BY hookwell_delivery_pending ON d.subscription_id = s.id
WHERE s.status NOT IN ('active', 'paused') AND s.status = 'disabled' AND s.status_changed_at <= ?
  AND s.status_reason IS NOT 'gone' AND ${waiting}
LIMIT CAST(? AS INTEGER)`;

const failText = `
UPDATE hookwell_delivery SET status = 'failed', reason = ?, lease_token = NULL, lease_until = NULL,
  updated_at = ?
WHERE id = ?`;
const failedRowsText = `
SELECT ${deliveryColumns} FROM json_each(?) j CROSS JOIN hookwell_delivery d ON d.id = j.value ${deliveryJoins}
ORDER BY d.id`;

const reportedText = "UPDATE hookwell_lane SET reported_at = ?, unreported = ? WHERE subscription_id = ?";

function toHeld(row: Row): HeldRow {
  return {
    id: text(row.id),
    projectId: text(row.project_id),
    subscriptionId: text(row.subscription_id),
    eventId: text(row.event_id),
    type: text(row.type),
  };
}

/** Cancels, fails and prunes, each in one short write of at most `limit` rows. */
export class Maintenance {
  readonly #connection: Connection;
  readonly #endpoints: Endpoints;
  readonly #pruning: Pruning;

  constructor(connection: Connection, endpoints: Endpoints) {
    this.#connection = connection;
    this.#endpoints = endpoints;
    this.#pruning = new Pruning(connection);
  }

  async run(retention: RetentionPolicy | null, limit: number, now: number): Promise<MaintenanceResult> {
    const returned = await giveBackHeld(this.#connection, limit, now);
    const cancelled = await this.#cancelEnded(limit, now);
    const requests = await pruneRequests(this.#connection, limit, now);
    const counts = await dropCounts(this.#connection, limit, now);
    const more = returned.more || counts || [cancelled, requests].includes(limit);
    if (retention === null) return { cancelled, failed: [], prunedDeliveries: 0, prunedEvents: 0, more };
    const failed = await this.#failHeld(retention.heldMs, limit, now);
    const pruned = await this.#pruning.run(retention, limit, now);
    return {
      cancelled,
      failed,
      prunedDeliveries: pruned.deliveries,
      prunedEvents: pruned.events,
      more: more || pruned.more || failed.length === limit,
    };
  }

  /** What waits for a deleted or gone subscription is cancelled. */
  async #cancelEnded(limit: number, now: number): Promise<number> {
    const connection = this.#connection;
    // Looked at without a lock first: most of the time there is nothing.
    if (
      connection.all("SELECT 1 FROM hookwell_lane INDEXED BY hookwell_lane_closing WHERE held = 2 LIMIT 1")
        .length === 0
    )
      return 0;
    return connection.write(() => {
      const rows = connection.all(closingText, [now, limit]);
      for (const row of rows) connection.all(cancelText, [text(row.reason), now, text(row.id)]);
      connection.all(closedText, [limit]);
      return rows.length;
    });
  }

  /** What a disabled subscription held for too long fails with the subscription's reason. */
  async #failHeld(heldMs: number, limit: number, now: number): Promise<Delivery[]> {
    const connection = this.#connection;
    if (connection.all(heldText, [now - heldMs, now, 1]).length === 0) return [];
    const ids = await connection.write(() => {
      const rows = connection.all(heldText, [now - heldMs, now, limit]);
      const tally = new Tally();
      for (const row of rows) {
        connection.all(failText, [text(row.reason), now, text(row.id)]);
        tally.add(text(row.project_id), { failed: 1 });
      }
      this.#tellOfHeld(rows, now);
      countMinute(connection, tally, now);
      return rows.map((row) => text(row.id));
    });
    return connection
      .all(failedRowsText, [JSON.stringify(ids)])
      .map((row) => this.#endpoints.delivery(row, now) ?? toUnreadable(row, now));
  }

  /** Inside a write: captures an event about the deliveries of each lane that failed, at most once a minute. */
  #tellOfHeld(rows: readonly Row[], now: number): void {
    const connection = this.#connection;
    for (const { projectId, subscriptionId, failed } of heldTooLong(rows.map(toHeld))) {
      const before = readLane(connection, subscriptionId);
      if (!before) continue;
      const { lane, news } = reportFailures(before.state, subscriptionId, failed, now);
      connection.all(reportedText, [lane.reportedAt ?? null, lane.unreported, subscriptionId]);
      const events = news.map(([type, data]) => operationalInput(projectId, type, subscriptionId, data, now));
      runProgramSync(captureProgram(events, now), connection.run);
    }
  }
}
