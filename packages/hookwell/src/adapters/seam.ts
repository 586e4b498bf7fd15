/** Parameters are text or null, each used once and in order: every client library agrees on those. */
export interface Statement {
  readonly text: string;
  readonly params: readonly (string | null)[];
}

/** Results are text, numbers that a double holds, or null. */
export type Row = Readonly<Record<string, unknown>>;

/** SQL that a transaction of the application speaks. `memory` runs no SQL: the memory store's own transaction. */
export type Dialect = "postgres" | "sqlite" | "memory";

/**
 * How the transactions of one client library are recognised and used. An adapter is a structural type over the
 * client, so that no driver is a dependency. It never begins, commits or rolls back.
 */
export interface AsyncTxAdapter<Tx> {
  readonly kind: "async";
  /** Name in error messages, such as "pg" or "kysely". */
  readonly name: string;
  dialect(tx: Tx): Dialect;
  /** True only when `tx` is inside an open transaction now. Any value may be passed. */
  isInTransaction(tx: unknown): tx is Tx;
  /** Runs one statement inside the transaction. */
  run(tx: Tx, statement: Statement): Promise<readonly Row[]>;
}

/** The same for a client whose calls return when they are done (SQLite handles). */
export interface SyncTxAdapter<Tx> {
  readonly kind: "sync";
  readonly name: string;
  dialect(tx: Tx): Dialect;
  isInTransaction(tx: unknown): tx is Tx;
  run(tx: Tx, statement: Statement): readonly Row[];
  /** Begins IMMEDIATE, runs `fn`, commits; rolls back and rethrows when it throws. */
  transaction<T>(database: Tx, fn: (tx: Tx) => T): T;
}

export type TxAdapter<Tx> = AsyncTxAdapter<Tx> | SyncTxAdapter<Tx>;

/**
 * A sequence of statements written once and run over any client: it yields a statement, is resumed with the
 * rows, and returns its result. Errors of a statement are thrown into it.
 */
export type Program<T> = Generator<Statement, T, readonly Row[]>;

/** Runs a program over an asynchronous client. */
export async function runProgram<T>(
  program: Program<T>,
  run: (statement: Statement) => Promise<readonly Row[]> | readonly Row[],
): Promise<T> {
  let step = program.next();
  while (!step.done) {
    let rows: readonly Row[];
    try {
      rows = await run(step.value);
    } catch (error) {
      step = program.throw(error);
      continue;
    }
    step = program.next(rows);
  }
  return step.value;
}

/** Runs a program over a synchronous client, without ever giving way to other work. */
export function runProgramSync<T>(program: Program<T>, run: (statement: Statement) => readonly Row[]): T {
  let step = program.next();
  while (!step.done) {
    let rows: readonly Row[];
    try {
      rows = run(step.value);
    } catch (error) {
      step = program.throw(error);
      continue;
    }
    step = program.next(rows);
  }
  return step.value;
}
