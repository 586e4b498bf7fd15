import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqliteHandle, SqliteStatement, SqliteValue } from "../../store/sqlite/driver.ts";
import { sqliteStore } from "../../store/sqlite/index.ts";
import type { SimProcess } from "./process.ts";

/** The keys of every simulated store: sealing is real, its keys are no secret here. */
export const encryptionKeys = `k1:${Buffer.alloc(32, 7).toString("base64")}`;

const file = "app.db";

/** What the simulated application keeps beside Hookwell's tables. */
const applicationTables = `
CREATE TABLE app_order (id TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
CREATE TABLE app_change (event_id TEXT PRIMARY KEY, facts TEXT NOT NULL) STRICT;`;

/** A real connection, with the statements that were ever prepared on it. */
class Line {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.database = new DatabaseSync(path);
    // Nothing here is meant to outlive the machine, so the journal stays in memory; readers see what is committed
    // while somebody writes, as with WAL. The rest is what a store sets on its connection.
    this.database.exec(
      "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -16000",
    );
  }

  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  rollback(): void {
    if (this.database.isTransaction) this.database.exec("ROLLBACK");
  }

  /** Keeps the file's lock, which is asked for at each statement otherwise, or gives it up. */
  keepLock(keeps: boolean): void {
    this.prepare(`PRAGMA locking_mode = ${keeps ? "EXCLUSIVE" : "NORMAL"}`).all();
    // It takes effect when the file is read the next time.
    this.prepare("SELECT 1 FROM sqlite_schema").all();
  }
}

/**
 * The file of the simulated databases, one after the other. The processes of a run share one real connection: no
 * write transaction of theirs spans an await, so they take turns on it whatever the number of connections, and
 * opening many, each with its statements and its cache, would cost more than all the rest of a run. Only a
 * transaction that the application keeps open has a connection of its own, which locks the others out as it would.
 */
export class Disk {
  readonly #directory: string;
  readonly path: string;
  /** Changes the SQL of the product, for planted faults. */
  readonly rewrite: (sql: string) => string;
  readonly #shared: Line;
  readonly #alone = new Set<Line>();
  readonly #idle: Line[] = [];
  readonly #memory = new Line(":memory:");
  readonly #tables: readonly string[];

  private constructor(directory: string, rewrite: (sql: string) => string, ruin: string) {
    this.#directory = directory;
    this.path = join(directory, file);
    this.rewrite = rewrite;
    this.#shared = new Line(this.path);
    const { database } = this.#shared;
    database.exec(applicationTables + ruin);
    this.#shared.keepLock(true);
    const tables = database
      .prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('hookwell_meta', 'hookwell_migration')",
      )
      .all() as { name: string }[];
    this.#tables = tables.map(({ name }) => name);
  }

  /** @param ruin SQL that takes something away from the schema, for planted faults */
  static async make(rewrite: (sql: string) => string = (sql) => sql, ruin = ""): Promise<Disk> {
    const directory = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "hookwell-sim-"));
    const store = sqliteStore({ path: join(directory, file), encryptionKeys, migrate: true });
    await store.open({ withKeys: true });
    await store.close();
    return new Disk(directory, rewrite, ruin);
  }

  /** Ends whatever the last run left open, and empties the tables. */
  format(): void {
    this.#shared.rollback();
    for (const line of this.#alone) this.letGo(line);
    const run = (sql: string): void => void this.#shared.prepare(sql).run();
    run("BEGIN IMMEDIATE");
    for (const table of this.#tables) run(`DELETE FROM ${table}`);
    run("COMMIT");
  }

  /** A connection of a process; only `:memory:` is no file. */
  open(process: SimProcess, path = this.path): SimHandle {
    return new SimHandle(this, process, path === this.path ? this.#shared : this.#memory);
  }

  /** One for a transaction that stays open. */
  openAlone(process: SimProcess): SimHandle {
    const line = this.#idle.pop() ?? new Line(this.path);
    if (this.#alone.size === 0) this.#shared.keepLock(false);
    this.#alone.add(line);
    return new SimHandle(this, process, line);
  }

  /** What is open on a connection is rolled back; one for a transaction that stays open can be had again. */
  letGo(line: Line): void {
    line.rollback();
    if (!this.#alone.delete(line)) return;
    this.#idle.push(line);
    if (this.#alone.size === 0) this.#shared.keepLock(true);
  }

  close(): void {
    for (const { database } of [this.#shared, ...this.#alone, ...this.#idle, this.#memory]) database.close();
    rmSync(this.#directory, { recursive: true });
  }
}

/**
 * A connection of one process, as node:sqlite would give it. Every statement may be the last thing its process does;
 * a dead process's connection is gone, and with it the transaction that was open.
 */
export class SimHandle implements SqliteHandle {
  readonly #disk: Disk;
  readonly #process: SimProcess;
  readonly #line: Line;
  #closed = false;
  /** Told at once, before anybody else can know. */
  onCommit: () => void = () => {};

  constructor(disk: Disk, process: SimProcess, line: Line) {
    this.#disk = disk;
    this.#process = process;
    this.#line = line;
    process.onCrash(() => this.close());
  }

  get isTransaction(): boolean {
    return !this.#closed && this.#line.database.isTransaction;
  }

  exec(sql: string): void {
    this.#process.statement(sql);
    // Settings are there already, and each anew would have all statements of the connection compiled again.
    if (!sql.startsWith("PRAGMA")) this.#line.database.exec(sql);
    if (sql === "COMMIT") this.onCommit();
  }

  prepare(sql: string): SimStatement {
    const statement = this.#line.prepare(this.#disk.rewrite(sql));
    return new SimStatement(this.#process, sql, statement);
  }

  /** What is open is rolled back. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#disk.letGo(this.#line);
  }
}

export class SimStatement implements SqliteStatement {
  readonly #process: SimProcess;
  readonly #sql: string;
  readonly #statement: StatementSync;

  constructor(process: SimProcess, sql: string, statement: StatementSync) {
    this.#process = process;
    this.#sql = sql;
    this.#statement = statement;
  }

  /** The shape of results is the default one already. */
  setReadBigInts(): void {}
  setReturnArrays(): void {}

  all(...params: SqliteValue[]): unknown[] {
    this.#process.statement(this.#sql);
    return this.#statement.all(...params);
  }

  run(...params: SqliteValue[]): void {
    this.#process.statement(this.#sql);
    this.#statement.run(...params);
  }
}
