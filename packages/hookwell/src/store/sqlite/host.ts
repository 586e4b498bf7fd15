import { type Program, type Row, runProgram, runProgramSync } from "../../adapters/seam.ts";
import { ConfigurationError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import type { Scope } from "../contract.ts";
import { libraryOf, libraryText, type OpenSqlite } from "./driver.ts";
import { statement } from "./rows.ts";
import { hostError } from "./sqlite-errors.ts";

/** A host connection should wait at least this long for a lock, in ms. */
const leastBusyTimeoutMs = 1_000;

export type AsyncScope = Extract<Scope, { kind: "async" }>;
export type SyncScope = Extract<Scope, { kind: "sync" }>;

/** Runs programs inside transactions of the application. Its connection's settings are never changed. */
export class Host {
  readonly #open: OpenSqlite;
  readonly #logger: Logger | undefined;
  readonly #sameLibrary = new WeakSet<object>();
  #library: unknown;
  #timeoutChecked = false;

  /** `open` makes our own connections. */
  constructor(open: OpenSqlite, logger: Logger | undefined) {
    this.#open = open;
    this.#logger = logger;
  }

  /** The first statement is given to the client before this returns: a call that is not awaited stays inside. */
  async run<T>({ adapter, tx }: AsyncScope, program: Program<T>): Promise<T> {
    this.#checkDialect(adapter.name, adapter.dialect(tx));
    try {
      return await runProgram(program, (item) => adapter.run(tx, item));
    } catch (error) {
      throw hostError(error);
    }
  }

  runSync<T>({ adapter, tx }: SyncScope, program: Program<T>): T {
    this.#checkDialect(adapter.name, adapter.dialect(tx));
    try {
      return runProgramSync(program, (item) => adapter.run(tx, item));
    } catch (error) {
      throw hostError(error);
    }
  }

  /** Once, after the first capture: warns about a connection that would give up too soon on a busy database. */
  *checkTimeout(): Program<void> {
    if (this.#timeoutChecked) return;
    this.#timeoutChecked = true;
    try {
      const [row] = yield statement("PRAGMA busy_timeout");
      const timeout = Number(row?.timeout);
      if (timeout < leastBusyTimeoutMs)
        this.#logger?.warn(
          `The application's SQLite connection has a busy timeout of ${timeout} ms, so its writes can fail with SQLITE_BUSY while Hookwell writes; set PRAGMA busy_timeout = 5000 on it.`,
        );
    } catch {
      // The event is captured. A client that cannot answer a PRAGMA, or whose transaction was ended before this
      // one was awaited, is no reason to fail it.
    }
  }

  /**
   * Once for each adapter, after its first capture: the application's connection must use the copy of SQLite that
   * ours uses. @throws ConfigurationError, so that the transaction is rolled back
   */
  *checkLibrary({ adapter }: AsyncScope | SyncScope): Program<void> {
    if (this.#sameLibrary.has(adapter)) return;
    let rows: readonly Row[];
    try {
      rows = yield statement(libraryText);
    } catch {
      // The transaction was ended before the emit was awaited: the event is captured, and the next emit asks.
      return;
    }
    this.#library ??= libraryOf(this.#open);
    if (rows[0]?.library !== this.#library)
      throw new ConfigurationError(
        "The application's SQLite connection and the store's use two copies of the SQLite library. In one process these do not see each other's locks and would lose writes. Open the store with the application's driver: sqliteStore({ path, open: (path, options) => new Database(path, options) }) for better-sqlite3, or use node:sqlite in both.",
        "two_sqlite_libraries",
      );
    this.#sameLibrary.add(adapter);
  }

  #checkDialect(name: string, dialect: string): void {
    if (dialect === "sqlite") return;
    throw new ConfigurationError(
      `The ${name} transaction speaks ${dialect} and the store is SQLite: an event can commit together with its change only in the same database.`,
    );
  }
}
