import { existsSync } from "node:fs";
import type { Row, Statement } from "../../adapters/seam.ts";
import { StorageError } from "../../model/errors.ts";
import { type Random, systemRandomNumber } from "../../model/random.ts";
import { systemTimers, type Timers } from "../../model/timers.ts";
import {
  type OpenSqlite,
  openNodeSqlite,
  rowsOf,
  type SqliteHandle,
  type SqliteStatement,
  type SqliteValue,
} from "./driver.ts";
import { isBusy, storageError } from "./sqlite-errors.ts";

export type { SqliteValue };

/** How long a busy database is tried again before a write gives up, in ms. */
const defaultPatienceMs = 30_000;
const longestWaitMs = 25;
const cachedStatements = 300;
/** A read that meets a lock waits so often, so many ms each time. */
const mostReadWaits = 40;
const readWaitMs = 5;
const pause = new Int32Array(new SharedArrayBuffer(4));

/**
 * Hookwell's own connection to the file. It never waits inside SQLite (busy timeout 0): a synchronous wait would
 * freeze the event loop that the holder of the lock may need. A busy write is tried again from the outside.
 */
export class Connection {
  readonly path: string;
  readonly #patienceMs: number;
  readonly #random: Random;
  readonly #timers: Timers;
  readonly #statements = new Map<string, SqliteStatement>();
  #database: SqliteHandle | undefined;
  #writing = false;

  /** Opens further connections with the same copy of SQLite. */
  readonly openHandle: OpenSqlite;

  constructor(
    path: string,
    options: {
      readonly patienceMs?: number;
      readonly random?: Random;
      readonly timers?: Timers;
      readonly open?: OpenSqlite;
    } = {},
  ) {
    this.path = path;
    this.openHandle = options.open ?? openNodeSqlite;
    this.#patienceMs = options.patienceMs ?? defaultPatienceMs;
    this.#random = options.random ?? systemRandomNumber;
    this.#timers = options.timers ?? systemTimers;
  }

  get exists(): boolean {
    return this.path === ":memory:" ? this.#database !== undefined : existsSync(this.path);
  }

  get connected(): boolean {
    return this.#database !== undefined;
  }

  /** Connects; a file that is not there is made. @throws StorageError */
  async connect(): Promise<void> {
    if (this.#database) return;
    try {
      this.#database = this.openHandle(this.path, { readonly: false });
      this.#database.exec("PRAGMA busy_timeout = 0");
      // All of them change only this connection, but for WAL, which is a property of the file: readers and the writer
      // do not stop each other there.
      this.#database.exec("PRAGMA synchronous = FULL");
      await this.#patiently(() => this.#useWal());
      this.#database.exec("PRAGMA foreign_keys = OFF");
      // Ids of deliveries are hashes, so their index is touched everywhere: its pages are to be at hand, and copied
      // back from the log seldom.
      this.#database.exec("PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4000");
    } catch (error) {
      this.close();
      throw storageError(error, this.path);
    }
    const [{ encoding } = {}] = this.all("PRAGMA encoding");
    if (encoding === "UTF-8") return;
    this.close();
    throw new StorageError(
      `The database ${this.path} keeps texts as ${String(encoding)}; Hookwell needs PRAGMA encoding = 'UTF-8', which must be set before the first table is made.`,
    );
  }

  #useWal(): void {
    const [row] = this.all("PRAGMA journal_mode");
    if (row?.journal_mode !== "wal" && this.path !== ":memory:") this.script("PRAGMA journal_mode = WAL");
  }

  close(): void {
    this.#statements.clear();
    this.#database?.close();
    this.#database = undefined;
  }

  /** Runs one statement and answers its rows. Outside of {@link write} it sees what is committed now. */
  all(text: string, params: readonly SqliteValue[] = []): Row[] {
    for (let waits = 0; ; waits++) {
      try {
        return rowsOf(this.#prepare(text), params) as Row[];
      } catch (error) {
        if (this.#writing || waits === mostReadWaits || !isBusy(error)) throw storageError(error, this.path);
        // A reader is stopped only while another process opens the file first or closes it last. That never
        // waits for this process, so waiting here, without giving way, ends.
        Atomics.wait(pause, 0, 0, readWaitMs);
      }
    }
  }

  /** Runs a statement of a program. */
  readonly run = (statement: Statement): Row[] => this.all(statement.text, statement.params);

  /** Runs a script of several statements without parameters. */
  script(sql: string): void {
    try {
      this.#open().exec(sql);
    } catch (error) {
      throw storageError(error, this.path);
    }
  }

  /**
   * BEGIN IMMEDIATE, `work`, COMMIT, without giving way to other work in between; rolled back when it throws.
   * `work` runs again when the database was busy, so it must have no effect of its own.
   * @throws StorageError when the database stays busy beyond patience, is read-only or full
   */
  async write<T>(work: () => T): Promise<T> {
    return this.#patiently(() => {
      this.#writing = true;
      try {
        return this.#transaction(work);
      } finally {
        this.#writing = false;
      }
    });
  }

  /** Between parts of long work, which holds up everything else in this process. */
  giveWay(): Promise<void> {
    return this.#timers.sleep(0);
  }

  #transaction<T>(work: () => T): T {
    this.all("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.all("COMMIT");
      return result;
    } catch (error) {
      this.#rollback();
      throw error;
    }
  }

  #rollback(): void {
    try {
      this.all("ROLLBACK");
    } catch {
      // SQLite rolls back by itself on some errors (a full disk, for one); the first error is the one to report.
    }
  }

  async #patiently<T>(attempt: () => T): Promise<T> {
    let waited = 0;
    for (let step = 1; ; step = Math.min(step * 2, longestWaitMs)) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error) || waited >= this.#patienceMs) throw storageError(error, this.path);
      }
      const wait = step * (0.5 + this.#random());
      waited += wait;
      await this.#timers.sleep(wait);
    }
  }

  #prepare(text: string): SqliteStatement {
    const known = this.#statements.get(text);
    if (known) return known;
    const statement = this.#open().prepare(text);
    if (this.#statements.size >= cachedStatements)
      this.#statements.delete(this.#statements.keys().next().value!);
    this.#statements.set(text, statement);
    return statement;
  }

  #open(): SqliteHandle {
    if (this.#database) return this.#database;
    throw new StorageError(`The store of ${this.path} is not open; call open() first, or it was closed.`);
  }
}
