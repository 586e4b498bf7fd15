import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type SqliteDatabase,
  SqliteDialect,
  SqliteDriver,
  type SqliteStatement,
} from "kysely";

/** What the dialect needs of a `DatabaseSync` of node:sqlite. */
export interface NodeSqliteHandle {
  close(): void;
  prepare(sql: string): NodeSqliteStatement;
}

interface NodeSqliteStatement {
  columns(): readonly unknown[];
  all(...params: never[]): unknown[];
  run(...params: never[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  iterate(...params: never[]): IterableIterator<unknown>;
}

export interface SqliteDialectOptions {
  /** A `DatabaseSync` of node:sqlite or a better-sqlite3 `Database`. Kysely's destroy() closes it. */
  readonly database: NodeSqliteHandle | SqliteDatabase;
}

/**
 * Kysely's own SQLite dialect with two changes: it also takes node:sqlite, and its transactions BEGIN IMMEDIATE.
 * A deferred one takes the write lock in its middle, and fails there when another writer came first. Kysely
 * itself lets one transaction at a time use the connection.
 */
export function sqliteDialect(options: SqliteDialectOptions): SqliteDialect {
  return new ImmediateSqliteDialect({ database: asKyselyDatabase(options.database) });
}

class ImmediateSqliteDialect extends SqliteDialect {
  readonly #config: { database: SqliteDatabase };
  constructor(config: { database: SqliteDatabase }) {
    super(config);
    this.#config = config;
  }
  override createDriver(): Driver {
    return new ImmediateSqliteDriver(this.#config);
  }
}

class ImmediateSqliteDriver extends SqliteDriver {
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }
}

function asKyselyDatabase(database: NodeSqliteHandle | SqliteDatabase): SqliteDatabase {
  return {
    close: () => database.close(),
    prepare: (sql) => {
      const statement = database.prepare(sql);
      return "reader" in statement ? statement : asKyselyStatement(statement);
    },
  };
}

function asKyselyStatement(statement: NodeSqliteStatement): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (params) => statement.all(...(params as never[])),
    run: (params) => statement.run(...(params as never[])),
    iterate: (params) => statement.iterate(...(params as never[])),
  };
}
