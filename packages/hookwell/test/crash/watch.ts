import { DatabaseSync } from "node:sqlite";
import type { PgPool } from "../../src/store/postgres/index.ts";
import type { OpenSqlite } from "../../src/store/sqlite/driver.ts";

/** One statement on its way to the database. */
export interface Statement {
  readonly text: string;
  /** It is a transaction of its own; otherwise what it did counts from the COMMIT on. */
  readonly alone: boolean;
}

/** Is told of every statement: before the database gets it, and when it has answered, before anybody has heard of it. */
export interface Watch {
  before?(statement: Statement): void;
  after?(statement: Statement, rows: readonly Readonly<Record<string, unknown>>[]): void;
}

/** Connections to PostgreSQL whose statements are watched. */
export function watchedPool(pool: PgPool, watch: Watch): PgPool {
  const around = async <Result extends { readonly rows: readonly Readonly<Record<string, unknown>>[] }>(
    statement: Statement,
    run: () => Promise<Result>,
  ): Promise<Result> => {
    watch.before?.(statement);
    const result = await run();
    watch.after?.(statement, result.rows);
    return result;
  };
  return {
    query: (given, values) =>
      around({ text: typeof given === "string" ? given : given.text, alone: true }, () =>
        pool.query(given, values),
      ),
    connect: async () => {
      const client = await pool.connect();
      return {
        query: (text, values) => around({ text, alone: false }, () => client.query(text, values)),
        release: (error) => client.release(error),
        on: (event, listener) => client.on?.(event, listener),
        off: (event, listener) => client.off?.(event, listener),
      };
    },
    on: (event, listener) => pool.on?.(event, listener),
    off: (event, listener) => pool.off?.(event, listener),
  };
}

/** Opens SQLite files on connections whose statements are watched. */
export function watchedSqlite(watch: Watch): OpenSqlite {
  const around = <Result>(text: string, run: () => Result): Result => {
    const statement = { text, alone: false };
    watch.before?.(statement);
    const result = run();
    watch.after?.(statement, []);
    return result;
  };
  return (path, { readonly }) => {
    const handle = new DatabaseSync(path, { readOnly: readonly });
    return {
      exec: (sql) => around(sql, () => handle.exec(sql)),
      prepare: (sql) => {
        const statement = handle.prepare(sql);
        return {
          all: (...params) => around(sql, () => statement.all(...params)),
          run: (...params) => around(sql, () => statement.run(...params)),
        };
      },
      close: () => handle.close(),
    };
  };
}
