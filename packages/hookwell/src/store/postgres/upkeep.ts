import type { Lag, MaintenanceResult, Now, RetentionPolicy } from "../contract.ts";
import type { Database } from "./database.ts";
import type { EndpointBook } from "./endpoints.ts";
import { giveBackHeld } from "./holds.ts";
import { loadDeliveries } from "./loading.ts";
import { pruneRequests } from "./requests.ts";
import { date, defined, integer, optionalDate, optionalInteger, text } from "./rows.ts";
import { upkeepTexts } from "./upkeep-sql.ts";

/** Rows looked at for each one that may be pruned: what must still be kept is passed over in pieces. */
const looksPerRow = 10;

/** Cancels, fails and prunes in small batches, each one statement. */
export class Upkeep {
  readonly #db: Database;
  readonly #endpoints: EndpointBook;
  /** Where the next look at a table of old rows begins; absent = at the oldest. */
  readonly #places = new Map<string, string>();

  constructor(db: Database, endpoints: EndpointBook) {
    this.#db = db;
    this.#endpoints = endpoints;
  }

  async maintain(retention: RetentionPolicy | null, limit: number, at: Now): Promise<MaintenanceResult> {
    const texts = upkeepTexts(this.#db.schema);
    const now = this.#db.now(at);
    const most = String(limit);
    const returned = await giveBackHeld(this.#db, limit, now);
    const cancelled = (await this.#db.run({ text: texts.cancelEnded, params: [now, most] })).length;
    const requests = await pruneRequests(this.#db, limit, now);
    const counts = (await this.#db.run({ text: texts.dropCounts, params: [now, most] })).length;
    let more = returned.more || [cancelled, requests, counts].includes(limit);
    if (retention === null) return { cancelled, failed: [], prunedDeliveries: 0, prunedEvents: 0, more };

    const failedRows = await this.#db.slots.use((slot) =>
      this.#db.run({ text: texts.failHeld, params: [now, String(retention.heldMs), most, slot] }),
    );
    const ids = failedRows.map((row) => text(row, "id"));
    const failed = ids.length > 0 ? await loadDeliveries(this.#db, this.#endpoints, ids, now) : [];

    const { deliveredMs, failedMs, eventsMs } = retention;
    let prunedDeliveries = 0;
    more ||= ids.length === limit;
    for (const [status, keptMs] of [
      ["delivered", deliveredMs],
      ["cancelled", deliveredMs],
      ["failed", failedMs],
    ] as const) {
      const left = limit - prunedDeliveries;
      if (left === 0) break;
      const pass = await this.#prune(
        status,
        texts.pruneDeliveries,
        [now, status, String(keptMs), String(eventsMs)],
        left,
      );
      prunedDeliveries += pass.pruned;
      more ||= pass.more;
    }
    const events = await this.#prune("event", texts.pruneEvents, [now, String(eventsMs)], limit);
    await this.#db.run({ text: texts.pruneSubscriptions, params: [now, String(eventsMs), most] });
    return {
      cancelled,
      failed: failed.map(({ delivery }) => delivery),
      prunedDeliveries,
      prunedEvents: events.pruned,
      more: more || events.more,
    };
  }

  async lag(at: Now): Promise<Lag> {
    const [row] = await this.#db.run({
      text: upkeepTexts(this.#db.schema).lag,
      params: [this.#db.now(at)],
    });
    return defined<Lag>({
      at: date(row!, "now"),
      oldestDueAt: optionalDate(row!, "oldest_due"),
      oldestNewAt: optionalDate(row!, "oldest_new"),
    });
  }

  async countRemaining(
    max: number,
    at: Now,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    const [row] = await this.#db.run({
      text: upkeepTexts(this.#db.schema).remaining,
      params: [this.#db.now(at), String(max)],
    });
    return { pending: integer(row!, "pending"), newEvents: integer(row!, "new_events") };
  }

  /** One look at the oldest rows, from where the last one ended; at the end of them it begins again. */
  async #prune(
    table: string,
    sql: (look: number, most: number) => string,
    params: readonly (string | null)[],
    limit: number,
  ): Promise<{ readonly pruned: number; readonly more: boolean }> {
    const look = limit * looksPerRow;
    const begin = this.#places.get(table) ?? "0";
    const [row] = await this.#db.run({
      text: sql(look, limit),
      params: [...params, begin],
    });
    const pruned = integer(row!, "pruned");
    const full = integer(row!, "seen") === look;
    const last = optionalInteger(row!, "last");
    // A batch that was full may have left rows behind it; only what was passed over is passed for good.
    if (pruned < limit) {
      if (full && last !== undefined) this.#places.set(table, String(Math.max(last, Number(begin) + 1)));
      else this.#places.delete(table);
    }
    return { pruned, more: pruned === limit || full };
  }
}
