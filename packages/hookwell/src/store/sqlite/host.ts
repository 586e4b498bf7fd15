import { type Program, runProgram, runProgramSync } from "../../adapters/seam.ts";
import { ConfigurationError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import type { Scope } from "../contract.ts";
import { statement } from "./rows.ts";
import { hostError } from "./sqlite-errors.ts";

/** A host connection should wait at least this long for a lock, in ms. */
const leastBusyTimeoutMs = 1_000;

export type AsyncScope = Extract<Scope, { kind: "async" }>;
export type SyncScope = Extract<Scope, { kind: "sync" }>;

/** Runs programs inside transactions of the application. Its connection's settings are never changed. */
export class Host {
  readonly #logger: Logger | undefined;
  #timeoutChecked = false;

  constructor(logger: Logger | undefined) {
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

  #checkDialect(name: string, dialect: string): void {
    if (dialect === "sqlite") return;
    throw new ConfigurationError(
      `The ${name} transaction speaks ${dialect} and the store is SQLite: an event can commit together with its change only in the same database.`,
    );
  }
}
