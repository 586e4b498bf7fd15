import type { RetentionPolicy } from "../contract.ts";
import type { Connection } from "./connection.ts";
import { integer, text } from "./rows.ts";

/** From time to time everything is looked at again: a clock may have been set back. */
const lookAgainMs = 6 * 60 * 60 * 1_000;

const endedText = `
SELECT rowid AS place, id, event_id, project_id, updated_at
FROM hookwell_delivery INDEXED BY hookwell_delivery_ended
WHERE status <> 'pending' AND status = ? AND updated_at <= ?
  AND (updated_at, rowid) > (?, ?)
ORDER BY updated_at, rowid LIMIT CAST(? AS INTEGER)`;

const oldEventsText = `
SELECT seq, captured_at, id, project_id, state
FROM hookwell_event INDEXED BY hookwell_event_list
WHERE captured_at <= ? AND (captured_at, id, seq) > (?, ?, ?)
ORDER BY captured_at, id, seq LIMIT CAST(? AS INTEGER)`;

const rowsOfEventText = `
SELECT id, status, updated_at FROM hookwell_delivery INDEXED BY hookwell_delivery_pair
WHERE event_id = ? AND project_id = ?`;
const eventText = "SELECT captured_at, state FROM hookwell_event WHERE id = ? AND project_id = ?";

const dropDeliveryText = "DELETE FROM hookwell_delivery WHERE id = ?";
const dropAttemptsText = "DELETE FROM hookwell_attempt WHERE delivery_id = ?";
const dropEventText = "DELETE FROM hookwell_event WHERE id = ? AND project_id = ?";
const dropBodiesText = "DELETE FROM hookwell_body WHERE event_id = ? AND project_id = ?";
const dropUnusedBodiesText = `
DELETE FROM hookwell_body WHERE event_id = ? AND project_id = ? AND variant NOT IN (
  SELECT variant FROM hookwell_delivery INDEXED BY hookwell_delivery_pair WHERE event_id = ? AND project_id = ?)`;

const tombstonesText = `
SELECT s.id FROM hookwell_subscription s INDEXED BY hookwell_subscription_off
WHERE s.status NOT IN ('active', 'paused') AND s.status = 'deleted' AND s.status_changed_at <= ?
  AND NOT EXISTS (
    SELECT 1 FROM hookwell_delivery d INDEXED BY hookwell_delivery_lane WHERE d.subscription_id = s.id)
LIMIT CAST(? AS INTEGER)`;
const dropSubscriptionTexts = [
  "DELETE FROM hookwell_subscription_filter WHERE subscription_id = ?",
  "DELETE FROM hookwell_endpoint WHERE subscription_id = ?",
  "DELETE FROM hookwell_lane WHERE subscription_id = ?",
  "DELETE FROM hookwell_subscription WHERE id = ?",
];

type FinalStatus = "delivered" | "failed" | "cancelled";

/** How far a walk has looked: the key of the last row. */
type Place = readonly (number | string)[];

interface Pruned {
  readonly deliveries: number;
  readonly events: number;
  /** A walk is not at its end. */
  readonly more: boolean;
}

const nothing: Pruned = { deliveries: 0, events: 0, more: false };

/**
 * Two walks, each past every row once: over deliveries in the order they ended, and over events in the order
 * they were captured. What the first cannot drop because its event's window is open, the second drops when that
 * closes; an event that keeps rows when the second passes goes with the last of them in the first.
 */
export class Pruning {
  readonly #connection: Connection;
  #policy = "";
  #startedAt = 0;
  #ended = new Map<FinalStatus, Place>();
  #captured: Place | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async run(policy: RetentionPolicy, limit: number, now: number): Promise<Pruned> {
    const name = JSON.stringify(policy);
    if (name !== this.#policy || now - this.#startedAt > lookAgainMs || now < this.#startedAt) {
      this.#policy = name;
      this.#startedAt = now;
      this.#ended = new Map();
      this.#captured = undefined;
    }
    const { eventsMs } = policy;
    let pruned: Pruned = { deliveries: 0, events: 0, more: false };
    const step = async (walk: (room: number) => Promise<Pruned>): Promise<void> => {
      const { deliveries, events, more } = await walk(limit - pruned.deliveries);
      pruned = {
        deliveries: pruned.deliveries + deliveries,
        events: pruned.events + events,
        more: pruned.more || more,
      };
    };
    for (const status of ["delivered", "failed", "cancelled"] as const)
      await step((room) => this.#walkEnded(status, now - keptMs(status, policy), now - eventsMs, room));
    await step((room) => this.#walkCaptured(policy, limit, room, now));
    await this.#dropTombstones(now - eventsMs, limit);
    return pruned;
  }

  /** Rows that ended before `cutoff`, of events captured before `window`; and the events they were the last of. */
  async #walkEnded(status: FinalStatus, cutoff: number, window: number, room: number): Promise<Pruned> {
    const from = this.#ended.get(status) ?? [Number.MIN_SAFE_INTEGER, 0];
    const look = (size: number) => this.#connection.all(endedText, [status, cutoff, ...from, size]);
    if (look(1).length === 0) return nothing;
    if (room < 1) return { ...nothing, more: true };
    const { rows, ...pruned } = await this.#connection.write(() => {
      const rows = look(room);
      let deliveries = 0;
      let events = 0;
      for (const row of rows) {
        const key = [text(row.event_id), text(row.project_id)] as const;
        const [event] = this.#connection.all(eventText, key);
        if (event && integer(event.captured_at) > window) continue;
        this.#dropDelivery(text(row.id));
        deliveries++;
        if (!event) this.#connection.all(dropUnusedBodiesText, [...key, ...key]);
        else if (event.state !== "new" && this.#connection.all(rowsOfEventText, key).length === 0) {
          this.#dropEvent(key);
          events++;
        }
      }
      return { rows, deliveries, events };
    });
    const last = rows.at(-1);
    if (last) this.#ended.set(status, [integer(last.updated_at), integer(last.place)]);
    return { ...pruned, more: rows.length === room };
  }

  /** Events whose window is over: their rows that are old enough, and they themselves when none is left. */
  async #walkCaptured(policy: RetentionPolicy, limit: number, room: number, now: number): Promise<Pruned> {
    const from = this.#captured ?? [Number.MIN_SAFE_INTEGER, "", 0];
    const look = (size: number) =>
      this.#connection.all(oldEventsText, [now - policy.eventsMs, ...from, size]);
    if (look(1).length === 0) return nothing;
    const { place, ...pruned } = await this.#connection.write(() => {
      const rows = look(limit);
      let place: Place = from;
      let deliveries = 0;
      let events = 0;
      let more = rows.length === limit;
      for (const row of rows) {
        const key = [text(row.id), text(row.project_id)] as const;
        const all = this.#connection.all(rowsOfEventText, key);
        const old = all.filter(({ status, updated_at }) =>
          isOld(text(status), integer(updated_at), policy, now),
        );
        const dropped = old.slice(0, Math.max(room - deliveries, 0));
        for (const delivery of dropped) this.#dropDelivery(text(delivery.id));
        deliveries += dropped.length;
        if (dropped.length < old.length) {
          more = true;
          break;
        }
        place = [integer(row.captured_at), text(row.id), integer(row.seq)];
        if (dropped.length < all.length || row.state === "new") continue;
        this.#dropEvent(key);
        events++;
      }
      return { place, deliveries, events, more };
    });
    this.#captured = place;
    return pruned;
  }

  #dropDelivery(id: string): void {
    this.#connection.all(dropAttemptsText, [id]);
    this.#connection.all(dropDeliveryText, [id]);
  }

  #dropEvent(key: readonly [string, string]): void {
    this.#connection.all(dropBodiesText, key);
    this.#connection.all(dropEventText, key);
  }

  /** Tombstones of deleted subscriptions go when no delivery to them is left. */
  async #dropTombstones(cutoff: number, limit: number): Promise<void> {
    const look = (size: number) => this.#connection.all(tombstonesText, [cutoff, size]);
    if (look(1).length === 0) return;
    await this.#connection.write(() => {
      for (const row of look(limit))
        for (const sql of dropSubscriptionTexts) this.#connection.all(sql, [text(row.id)]);
    });
  }
}

function isOld(status: string, endedAt: number, policy: RetentionPolicy, now: number): boolean {
  return status !== "pending" && endedAt <= now - keptMs(status, policy);
}

function keptMs(status: string, policy: RetentionPolicy): number {
  return status === "failed" ? policy.failedMs : policy.deliveredMs;
}
