import type { Logger } from "../../model/observe.ts";
import type { Claimed } from "./claim.ts";
import type { Database } from "./database.ts";
import { recordOutcomes } from "./record.ts";

/**
 * Rows that were claimed and could not be read, because the database went away in between. Nobody sends them, so they
 * are given back, with their attempt, as soon as it answers again: otherwise they would wait for the end of their
 * lease.
 */
export class Unseen {
  #rows: Claimed["rows"] = [];
  #sawSince = true;

  /** The look at claimed rows has succeeded. */
  seen(): void {
    this.#sawSince = true;
  }

  /**
   * It has failed. After a second failure in a row nothing is given back: it may be the rows themselves, which must
   * not come again at once, and must spend their attempts.
   */
  failed(rows: Claimed["rows"]): void {
    if (this.#sawSince) this.#rows = [...this.#rows, ...rows];
    this.#sawSince = false;
  }

  /** Gives back what is there. Rejects when the database still does not answer; then they stay here. */
  async giveBack(db: Database, now: string | null, logger: Logger | undefined): Promise<void> {
    if (this.#rows.length === 0) return;
    const rows = this.#rows;
    this.#rows = [];
    try {
      const released = rows.map((row) => ({ ...row, kind: "released" as const }));
      await recordOutcomes(db, released, now, logger);
    } catch (error) {
      this.#rows = [...rows, ...this.#rows];
      throw error;
    }
  }
}
