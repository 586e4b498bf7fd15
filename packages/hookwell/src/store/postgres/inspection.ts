import type { Row } from "../../adapters/seam.ts";
import { type Finding, mostRoutes, type StoreInspection } from "../inspection-contract.ts";
import { type Database, nowSql, textsFor } from "./database.ts";
import type { PgClient, PgPool } from "./options.ts";
import { date, integer, optionalInteger, text } from "./rows.ts";

const busyPart = 0.8;
const longTransactionMs = 10 * 60_000;

// Routes one after the other by the index: there may be a million events of one.
const undispatchedSql = textsFor(
  (s) => `WITH RECURSIVE routes (route, number) AS (
  SELECT (SELECT min(e.route) FROM ${s}.event e WHERE e.state = 'new'), 1
  UNION ALL
  SELECT (SELECT min(e.route) FROM ${s}.event e WHERE e.state = 'new' AND e.route > routes.route), number + 1
  FROM routes WHERE routes.route IS NOT NULL AND number < ${mostRoutes}
)
SELECT routes.route, (
  SELECT min(first.captured_at) FROM (
    SELECT e.captured_at FROM ${s}.event e
    WHERE e.state = 'new' AND e.route = routes.route ORDER BY e.due_at, e.seq LIMIT 1000
  ) AS first
)::text AS oldest
FROM routes WHERE routes.route IS NOT NULL`,
);

// Of other roles only the number of connections can be seen, unless this one has pg_read_all_stats.
const serverSql = `SELECT ${nowSql("$1")}::text AS now, current_setting('server_version') AS version,
  pg_is_in_recovery()::int::text AS standby,
  (current_setting('default_transaction_read_only') = 'on')::int::text AS read_only,
  (current_setting('autovacuum') = 'on')::int::text AS autovacuum,
  current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
  (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)::text AS most,
  (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend')::text AS used,
  (SELECT floor(max(extract(epoch FROM clock_timestamp() - a.xact_start)) * 1000)::bigint
    FROM pg_stat_activity a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid())::text AS longest`;

export async function inspect(db: Database, pool: PgPool, now: string | null): Promise<StoreInspection> {
  const [server] = await db.run({ text: serverSql, params: [now] });
  const waiting = await db.run({ text: undispatchedSql(db.schema), params: [] });
  return {
    clock: date(server!, "now"),
    undispatched: waiting.map((row) => ({ route: text(row, "route"), oldestAt: date(row, "oldest") })),
    findings: [...serverFindings(server!), ...(await poolerFindings(pool))],
  };
}

function serverFindings(row: Row): Finding[] {
  const findings: Finding[] = [
    { level: "ok", check: "server", message: `PostgreSQL ${text(row, "version")} answers.` },
  ];
  const problem = (check: string, message: string, advice: string): void =>
    void findings.push({ level: "problem", check, message, advice });
  if (integer(row, "standby") === 1 || integer(row, "read_only") === 1)
    problem(
      "server",
      "The server takes no writes: it is a standby, or its transactions are read-only by default.",
      "Point HOOKWELL_DATABASE_URL (DATABASE_URL) at the primary.",
    );
  if (integer(row, "autovacuum") === 0)
    problem(
      "vacuum",
      "autovacuum is off: dead rows of the queue are never removed, and claims become slower with every day.",
      "Set autovacuum = on.",
    );
  if (text(row, "fsync") === "off")
    problem(
      "durability",
      "fsync is off: a crash of the server can lose or damage committed events.",
      "Set fsync = on, but for a database of tests.",
    );
  else if (text(row, "synchronous_commit") === "off")
    findings.push({
      level: "note",
      check: "durability",
      message:
        "synchronous_commit is off: a crash of the server can take back the last moments, events together with their changes.",
    });
  return [...findings, connections(row), ...longTransaction(row)];
}

function connections(row: Row): Finding {
  const [used, most] = [integer(row, "used"), integer(row, "most")];
  const message = `${used} of ${most} connections are used.`;
  return used < most * busyPart
    ? { level: "ok", check: "connections", message }
    : {
        level: "problem",
        check: "connections",
        message,
        advice:
          "A worker needs two. Lower `max` of the pools, put a pooler in transaction mode in front, or raise max_connections.",
      };
}

function longTransaction(row: Row): Finding[] {
  const ms = optionalInteger(row, "longest") ?? 0;
  if (ms < longTransactionMs) return [];
  return [
    {
      level: "problem",
      check: "vacuum",
      message: `A transaction has been open for ${Math.floor(ms / 60_000)} minutes: dead rows that are younger stay, and claims become slower.`,
      advice:
        "SELECT pid, state, xact_start, query FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY xact_start shows it; end what forgot to commit, and set idle_in_transaction_session_timeout.",
    },
  ];
}

/** A pooler tells its clients another process id than the server does. */
async function poolerFindings(pool: PgPool): Promise<Finding[]> {
  const client: PgClient & { readonly processID?: number | null } = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query("BEGIN READ ONLY");
    const { rows } = await client.query("SELECT pg_backend_pid()::text AS pid");
    await client.query("COMMIT");
    const told = client.processID;
    if (typeof told !== "number" || rows[0]?.pid === String(told)) return [];
  } catch (error) {
    broken = error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    client.release(broken);
  }
  return [
    {
      level: "note",
      check: "pooler",
      message: "Connections go through a pooler. Transaction mode is fine: no session state is kept.",
      advice:
        "Only `listen` of postgresStore needs a direct connection string; `hookwell migrate` is best run over one too.",
    },
  ];
}
