import type { Clock } from "../../model/clock.ts";
import type { IdFunc } from "../../model/ids.ts";
import type { Logger } from "../../model/observe.ts";

export interface SqliteOptions {
  /** Path of the database file, the application's own; `:memory:` is a database of this store alone. */
  readonly path: string;
  /**
   * `k2:<base64>,k1:…`, newest first. Default: HOOKWELL_ENCRYPTION_KEYS, else the file `<path>.key`, which is made
   * (mode 0600) when keys are first needed. Capture needs none.
   */
  readonly encryptionKeys?: string;
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
}
