import type { PgPool, PgResult } from "../../src/store/postgres/index.ts";

/** A node of EXPLAIN (FORMAT JSON), as far as the tests read it. */
interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

/** What one statement did, as the server measured it. */
export interface Measured {
  readonly text: string;
  /** Pages touched. */
  readonly blocks: number;
  /** Rows that scans of a table read, those that a filter threw away included, by table. */
  readonly rowsRead: ReadonlyMap<string, number>;
  /** Tables read from end to end. */
  readonly seqScans: readonly string[];
}

/**
 * A pool that first runs each statement under EXPLAIN ANALYZE in a transaction that it rolls back, keeps what the
 * server measured, and then runs it for real.
 */
export class MeasuringPool implements PgPool {
  readonly #pool: PgPool;
  readonly measured: Measured[] = [];

  constructor(pool: PgPool) {
    this.#pool = pool;
  }

  async query(text: string, values: (string | null)[] = []): Promise<PgResult> {
    await this.#measure(text, values);
    return await this.#pool.query(text, values);
  }

  async connect(): ReturnType<PgPool["connect"]> {
    const client = await this.#pool.connect();
    return {
      query: async (text, values = []) => {
        if (/^(BEGIN|COMMIT|ROLLBACK)/.test(text)) return await client.query(text, values);
        await client.query("SAVEPOINT measuring");
        this.#keep(text, await client.query(`${explain} ${text}`, values));
        await client.query("ROLLBACK TO SAVEPOINT measuring");
        return await client.query(text, values);
      },
      release: (error) => client.release(error),
    };
  }

  /** The statements measured since the last call. */
  take(): Measured[] {
    return this.measured.splice(0);
  }

  async #measure(text: string, values: (string | null)[]): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      this.#keep(text, await client.query(`${explain} ${text}`, values));
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  }

  #keep(text: string, { rows }: PgResult): void {
    const [{ Plan: plan }] = rows[0]!["QUERY PLAN"] as [{ Plan: PlanNode }];
    const rowsRead = new Map<string, number>();
    const seqScans: string[] = [];
    for (const node of nodesOf(plan)) {
      const table = node["Relation Name"];
      if (table === undefined || node["Node Type"] === "ModifyTable") continue;
      const thrownAway = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
      const rows = (node["Actual Rows"] + thrownAway) * node["Actual Loops"];
      rowsRead.set(table, (rowsRead.get(table) ?? 0) + rows);
      if (node["Node Type"] === "Seq Scan" && node["Actual Loops"] > 0) seqScans.push(table);
    }
    this.measured.push({
      text,
      blocks: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
      rowsRead,
      seqScans,
    });
  }
}

const explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)";

function* nodesOf(node: PlanNode): Iterable<PlanNode> {
  yield node;
  for (const child of node.Plans ?? []) yield* nodesOf(child);
}
