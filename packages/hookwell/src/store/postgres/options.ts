import type { Clock } from "../../model/clock.ts";
import { ConfigurationError } from "../../model/errors.ts";
import type { IdFunc } from "../../model/ids.ts";
import type { Logger } from "../../model/observe.ts";

/** The part of a result that Hookwell reads. */
export interface PgResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** A statement that the server keeps under a name, with its plan. */
export interface PgPrepared {
  readonly name: string;
  readonly text: string;
  readonly values: (string | null)[];
}

/** What Hookwell needs of a pooled `pg` client. */
export interface PgClient {
  query(text: string, values?: (string | null)[]): Promise<PgResult>;
  /** With an error the connection is closed instead of used again. */
  release(error?: Error | boolean): void;
  on?(event: "error", listener: (error: Error) => void): unknown;
  off?(event: "error", listener: (error: Error) => void): unknown;
}

/**
 * What Hookwell needs of a `pg` Pool (8.11 or newer), so that the driver is no dependency. A connection is held
 * only while a statement or a short transaction runs, so two are enough.
 */
export interface PgPool {
  /** Given a prepared statement only with `preparedStatements: true`. */
  query(statement: string | PgPrepared, values?: (string | null)[]): Promise<PgResult>;
  connect(): Promise<PgClient>;
  on?(event: "error", listener: (error: Error) => void): unknown;
  off?(event: "error", listener: (error: Error) => void): unknown;
}

export interface PostgresOptions {
  /** Made and ended by the caller. It may go through a pooler in transaction mode. */
  readonly pool: PgPool;
  /** Schema of Hookwell's tables: lower-case letters, digits and _, at most 48 characters. Default "hookwell". */
  readonly schema?: string;
  /** `k2:<base64>,k1:…`, newest first. Default: HOOKWELL_ENCRYPTION_KEYS. Capture needs none. */
  readonly encryptionKeys?: string;
  /** True = `open()` creates or updates the schema. Default false. */
  readonly migrate?: boolean;
  /** Virtual time for tests: stands in for the database's clock wherever that would be read. */
  readonly now?: Clock;
  /** Ids of endpoint versions. Default: `end_` + UUIDv7. */
  readonly idFunc?: IdFunc;
  /**
   * Wakes this process at once when another one commits work, over a connection of its own (LISTEN). Give it in
   * the processes that emit too: they send the notice, at most one per 50 ms. It must not go through a pooler in
   * transaction mode. Without it work of other processes is found by polling.
   */
  readonly listen?: { readonly connectionString: string };
  /**
   * True = the statements of the hot paths are prepared under a name on each connection, so that the server plans
   * them once: less than half of its work for them. Only where a connection keeps what was prepared on it: directly,
   * or through a pooler that follows prepared statements (PgBouncer 1.21 or newer). Default false.
   */
  readonly preparedStatements?: boolean;
  /** Told what no caller is there to hear: a lost connection, an outcome that could not be recorded. */
  readonly logger?: Logger;
}

const schemaPattern = /^[a-z_][a-z0-9_]{0,47}$/;

/** The schema name, quoted for SQL. */
export function quotedSchema(schema: string): string {
  if (!schemaPattern.test(schema))
    throw new ConfigurationError(
      `Schema name ${JSON.stringify(schema)} is not usable; use lower-case letters, digits and _, at most 48 characters.`,
    );
  return `"${schema}"`;
}
