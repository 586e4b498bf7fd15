import type { Clock } from "../../model/clock.ts";
import type { IdFunc } from "../../model/ids.ts";
import type { Logger } from "../../model/observe.ts";
import type { Random } from "../../model/random.ts";
import type { Timers } from "../../model/timers.ts";
import type { OpenSqlite } from "./driver.ts";

export interface SqliteOptions {
  /** Path of the database file, the application's own; `:memory:` is a database of this store alone. */
  readonly path: string;
  /**
   * `k2:<base64>,k1:…`, newest first. Default: HOOKWELL_ENCRYPTION_KEYS, else the file `<path>.key`, which is made
   * (mode 0600) when keys are first needed. Capture needs none.
   */
  readonly encryptionKeys?: string;
  /**
   * Opens the store's connections. Default: node:sqlite. An application on better-sqlite3 must give
   * `(path, options) => new Database(path, options)`: two copies of SQLite in one process do not see each other's
   * locks. A first emit through another copy is refused.
   */
  readonly open?: OpenSqlite;
  /** True = `open()` creates or updates the tables. Default false. */
  readonly migrate?: boolean;
  /** The store's clock. */
  readonly now?: Clock;
  /** Ids of endpoint versions. Default: `end_` + UUIDv7. */
  readonly idFunc?: IdFunc;
  /** Told what no caller is there to hear: a key file that was made, a host connection without busy timeout. */
  readonly logger?: Logger;
  /** How long a write waits for a busy database before it fails, in ms. Default 30,000. */
  readonly patienceMs?: number;
  /** What it waits with. Default: the runtime's timers. */
  readonly timers?: Timers;
  /** For the jitter of those waits. */
  readonly randomNumber?: Random;
}
