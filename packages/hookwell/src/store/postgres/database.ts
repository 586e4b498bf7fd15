import { hash } from "node:crypto";
import { type Program, type Row, runProgram, type Statement } from "../../adapters/seam.ts";
import type { Clock } from "../../model/clock.ts";
import { ConfigurationError, isHookwellError } from "../../model/errors.ts";
import { systemRandom } from "../../model/ids.ts";
import type { Now, Scope } from "../contract.ts";
import { isConflict, isMissingSchema, missingSchema, storageFailure } from "./failures.ts";
import type { PgClient, PgPool, PgResult } from "./options.ts";
import { ShortWay } from "./short-way.ts";
import { Slots } from "./slots.ts";

/** Runs one statement. */
export type Run = (statement: Statement) => Promise<readonly Row[]>;

const conflictTries = 5;

/**
 * The store's own pool: statements that commit by themselves, and short transactions. What was rolled back for a
 * deadlock or a serialization failure is run again; every other failure is an error of Hookwell.
 */
export class Database {
  readonly #pool: PgPool;
  readonly #clock: Clock | undefined;
  readonly #prepares: boolean;
  /** Name of the schema, quoted for SQL. */
  readonly schema: string;
  readonly shortWays = { claim: new ShortWay(), dispatch: new ShortWay(), record: new ShortWay() };
  /** Rows of counts that only this store writes. */
  readonly slots = new Slots(Buffer.from(systemRandom(6)).toString("hex"));

  constructor(pool: PgPool, schema: string, clock: Clock | undefined, prepares = false) {
    this.#pool = pool;
    this.schema = schema;
    this.#clock = clock;
    this.#prepares = prepares;
  }

  /** What a statement is given for "now": milliseconds as text, or null for the database's clock. */
  now(now: Now): string | null {
    const instant = now ?? this.#clock?.();
    return instant ? String(instant.getTime()) : null;
  }

  /** One statement, committed when it is done. */
  async run(statement: Statement): Promise<readonly Row[]> {
    return await this.#alone(statement, () => this.#pool.query(statement.text, [...statement.params]));
  }

  /** As {@link run}, for the few texts of the hot paths: prepared under a name where that was asked for. */
  async hot({ text, params }: Statement): Promise<readonly Row[]> {
    if (!this.#prepares) return await this.run({ text, params });
    const prepared = { name: statementName(text), text, values: [...params] };
    return await this.#alone({ text, params }, () => this.#pool.query(prepared));
  }

  /**
   * By itself it runs at the server's default isolation. Where that is a stricter one, what others commit rolls it back
   * time and again, so the second try is a transaction of ours.
   */
  async #alone(statement: Statement, first: () => Promise<PgResult>): Promise<readonly Row[]> {
    return await this.#again(async (tries) =>
      tries === 1 ? (await first()).rows : await this.#within((run) => run(statement)),
    );
  }

  /**
   * Statements in one READ COMMITTED transaction, whatever the server's default: each sees what was committed
   * before it began. `work` may run more than once, so it must have no effect outside the database.
   */
  async transaction<T>(work: (run: Run) => Promise<T>): Promise<T> {
    return await this.#again(() => this.#within(work));
  }

  async #within<T>(work: (run: Run) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    client.on?.("error", heard);
    let broken: Error | undefined;
    try {
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
      const result = await work(async ({ text, params }) => (await client.query(text, [...params])).rows);
      await client.query("COMMIT");
      return result;
    } catch (error) {
      broken = await rollback(client);
      throw error;
    } finally {
      client.off?.("error", heard);
      client.release(broken);
    }
  }

  /** Runs a program in the scope's transaction, or in one of its own. */
  async program<T>(scope: Scope, make: () => Program<T>): Promise<T> {
    if (scope.kind === "own") return await this.transaction((run) => runProgram(make(), run));
    return await this.joined(scope, make());
  }

  /** Runs a program in the caller's transaction. Its errors stay the driver's own: the caller's retries know them. */
  async joined<T>(scope: Exclude<Scope, { kind: "own" }>, program: Program<T>): Promise<T> {
    if (scope.kind === "sync")
      throw new ConfigurationError(
        `A PostgreSQL store cannot join the synchronous transaction of ${scope.adapter.name}.`,
      );
    const dialect = scope.adapter.dialect(scope.tx);
    if (dialect !== "postgres")
      throw new ConfigurationError(
        `The transaction (${scope.adapter.name}) speaks ${dialect} and the store is PostgreSQL; give the store and the adapter the same database.`,
      );
    try {
      return await runProgram(program, (statement) => scope.adapter.run(scope.tx, statement));
    } catch (error) {
      throw isMissingSchema(error) ? missingSchema(this.schema, error) : error;
    }
  }

  async #again<T>(work: (tries: number) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work(tries);
      } catch (error) {
        if (isConflict(error) && tries < conflictTries) continue;
        throw isHookwellError(error) ? error : storageFailure(this.schema, error);
      }
    }
  }
}

/**
 * A client that is checked out tells of its lost connection by an event that ends the process when nobody listens.
 * Nothing is swallowed: its next statement is refused.
 */
function heard(): void {}

/** An error means that the connection must not be used again. */
async function rollback(client: PgClient): Promise<Error | undefined> {
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

const names = new Map<string, string>();

/** The same text has the same name in every version, and another text another one. */
function statementName(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `hookwell_${hash("sha256", text, "base64url").slice(0, 24)}`;
    names.set(text, name);
  }
  return name;
}

/**
 * A number of rows as the texts that tell the planner of it say it: rounded up to a power of two, so that there are
 * few such texts.
 */
export function roundedCount(count: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(count, 1)));
}

/** Builds the texts of a group of statements once for each schema. */
export function textsFor<T>(build: (schema: string) => T): (schema: string) => T {
  const known = new Map<string, T>();
  return (schema) => {
    let texts = known.get(schema);
    if (texts === undefined) {
      texts = build(schema);
      known.set(schema, texts);
    }
    return texts;
  };
}

/**
 * SQL for "is one of these few keys". The planner takes such an array for ten rows whatever it guesses about
 * the subquery, and so probes an index; joined plainly, a wrong guess makes it read a table from end to end.
 * Never together with a join on the same column: the array would be searched again for each row. What must be
 * joined is probed by a LATERAL subquery with a LIMIT, or comes from a list with a literal LIMIT.
 */
export function oneOf(column: string, keys: string): string {
  return `${column} = ANY (ARRAY(${keys}))`;
}

/** SQL for "now" in epoch milliseconds: the given text parameter, or the clock when it is null. */
export function nowSql(parameter: string): string {
  return `coalesce(${parameter}::text::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`;
}
