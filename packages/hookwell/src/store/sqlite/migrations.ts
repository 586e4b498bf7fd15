import type { Row } from "../../adapters/seam.ts";
import type { Clock } from "../../model/clock.ts";
import { SchemaVersionError } from "../../model/errors.ts";
import {
  type AppliedMigration,
  type Migration,
  type MigrationStatus,
  type Migrations,
  migrationName,
  migrationStatus,
  schemaProblem,
} from "../migrations.ts";
import type { Connection } from "./connection.ts";
import { countsMigration } from "./counts-migration.ts";
import type { SqliteHandle } from "./driver.ts";
import { holdTables } from "./hold-tables.ts";
import { initialTables } from "./initial-tables.ts";
import { replayTables } from "./replay-tables.ts";
import { requestTables } from "./request-tables.ts";
import { integer } from "./rows.ts";
import { storageError } from "./sqlite-errors.ts";

/** Operators look for parked events where all is well, too: without it that reads every event. */
const parkedEvents =
  "CREATE INDEX hookwell_event_parked ON hookwell_event (captured_at, id) WHERE state = 'parked';\n";

/** The steps of the SQLite schema. Released ones are never edited. */
export const sqliteMigrations: readonly Migration[] = [
  { version: 1, name: "initial", compatibleFrom: 1, sql: initialTables },
  { version: 2, name: "idempotent_requests", compatibleFrom: 1, sql: requestTables },
  { version: 3, name: "parked_events", compatibleFrom: 1, sql: parkedEvents },
  { version: 4, name: "replays", compatibleFrom: 1, sql: replayTables },
  { version: 5, name: "minute_counts", compatibleFrom: 1, sql: countsMigration.trimStart() },
  { version: 6, name: "holds", compatibleFrom: 1, sql: holdTables },
];

/** The table of applied steps: made before the first step, and never changed. */
const migrationTable = `CREATE TABLE IF NOT EXISTS hookwell_migration (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  compatible_from INTEGER NOT NULL
) STRICT;
`;
const appliedText = "SELECT version, compatible_from FROM hookwell_migration";
const hasTableText = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'hookwell_migration'";

export class SqliteMigrations implements Migrations {
  readonly #connection: Connection;
  readonly #now: Clock;
  readonly #steps: readonly Migration[];

  constructor(connection: Connection, now: Clock, steps: readonly Migration[] = sqliteMigrations) {
    this.#connection = connection;
    this.#now = now;
    this.#steps = steps;
  }

  async migrate(): Promise<readonly string[]> {
    const connection = this.#connection;
    await connection.connect();
    return connection.write(() => {
      const status = this.#status(this.#applied());
      if (status.current > status.wanted && !status.usable) throw this.#unusable(status);
      const pending = this.#steps.filter((step) => step.version > status.current);
      if (pending.length > 0) connection.script(migrationTable);
      for (const step of pending) {
        connection.script(step.sql);
        connection.all(
          "INSERT INTO hookwell_migration (version, name, applied_at, compatible_from) VALUES (?, ?, ?, ?)",
          [step.version, step.name, this.#now().getTime(), step.compatibleFrom],
        );
      }
      return pending.map(migrationName);
    });
  }

  sql(): string {
    const steps = this.#steps.map(
      (step) =>
        `-- ${migrationName(step)}\n${step.sql}INSERT INTO hookwell_migration (version, name, applied_at, compatible_from)\n  VALUES (${step.version}, '${step.name}', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ${step.compatibleFrom});\n`,
    );
    return `BEGIN IMMEDIATE;\n${migrationTable}\n${steps.join("\n")}COMMIT;\n`;
  }

  async check(): Promise<MigrationStatus> {
    if (this.#connection.connected) return this.#status(this.#applied());
    if (!this.#connection.exists) return this.#status([]);
    // A connection of its own, because ours would make the file a WAL one.
    let reader: SqliteHandle | undefined;
    try {
      reader = this.#connection.openHandle(this.#connection.path, { readonly: true });
      const rows = reader.prepare(hasTableText).all().length > 0 ? reader.prepare(appliedText).all() : [];
      return this.#status((rows as Row[]).map(appliedMigration));
    } catch (error) {
      throw storageError(error, this.#connection.path);
    } finally {
      reader?.close();
    }
  }

  /** @throws SchemaVersionError unless this build can use the database as it is */
  async require(): Promise<void> {
    const status = await this.check();
    if (!status.usable) throw this.#unusable(status);
  }

  #applied(): AppliedMigration[] {
    if (this.#connection.all(hasTableText).length === 0) return [];
    return this.#connection.all(appliedText).map(appliedMigration);
  }

  #status(applied: readonly AppliedMigration[]): MigrationStatus {
    return migrationStatus(this.#steps, applied);
  }

  #unusable(status: MigrationStatus): SchemaVersionError {
    return new SchemaVersionError(schemaProblem(status, `The database ${this.#connection.path}`)!);
  }
}

function appliedMigration(row: Readonly<Record<string, unknown>>): AppliedMigration {
  return { version: integer(row.version), compatibleFrom: integer(row.compatible_from) };
}
