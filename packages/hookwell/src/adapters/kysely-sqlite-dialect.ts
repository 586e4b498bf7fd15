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

/** Statements of node:sqlite that are kept prepared: preparing one takes several times as long as running it. */
const cachedStatements = 200;

function asKyselyDatabase(database: NodeSqliteHandle | SqliteDatabase): SqliteDatabase {
  const statements = new Map<string, SqliteStatement>();
  return {
    close: () => {
      statements.clear();
      database.close();
    },
    prepare: (sql) => {
      const known = statements.get(sql);
      if (known) return known;
      const prepared = database.prepare(sql);
      if ("reader" in prepared) return prepared;
      const statement = asKyselyStatement(prepared, () => database.prepare(sql) as NodeSqliteStatement);
      if (statements.size >= cachedStatements) statements.delete(statements.keys().next().value!);
      statements.set(sql, statement);
      return statement;
    },
  };
}

/** A stream is read from a statement of its own: one that is left half read is in nobody's way. */
function asKyselyStatement(
  statement: NodeSqliteStatement,
  another: () => NodeSqliteStatement,
): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (params) => statement.all(...(params as never[])),
    run: (params) => statement.run(...(params as never[])),
    iterate: (params) => another().iterate(...(params as never[])),
  };
}
