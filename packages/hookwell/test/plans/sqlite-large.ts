import { DatabaseSync } from "node:sqlite";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshSqlite } from "../support/databases.ts";

/** The time in the large database: rows are due before it, lanes wait until after it. */
export const largeNow = 1_800_000_000_000;
// npm test shows that cost does not follow the size; npm run test:long has the sizes that are promised.
const long = process.env.HOOKWELL_LONG !== undefined;
export const pendingOnOneLane = long ? 1_000_000 : 200_000;
export const waitingLanes = long ? 100_000 : 20_000;
export const readyLanes = 20;

const endpoints = `
INSERT INTO hookwell_subscription (id, project_id, tenant_id, owner_id, url, url_host, event_types, header_names,
  status, ordering, endpoint_id, created_at, updated_at, status_changed_at)
SELECT subscription_id, 'live', '', '', 'https://r.example/', 'r.example', '["user.*"]', '[]', 'active', 'none',
  'end_' || subscription_id, 1, 1, 1 FROM hookwell_lane;
INSERT INTO hookwell_subscription_filter (project_id, filter, owner_id, tenant_id, subscription_id)
SELECT 'live', 'other.' || id, '', '', id FROM hookwell_subscription;`;

const numbers = (count: number): string =>
  `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;

const deliveryColumns = `id, project_id, event_id, subscription_id, endpoint_id, variant, type, status, attempts,
  round, next_attempt_at, due_at, created_at, updated_at`;

const ifOpen = (value: string): string => `CASE i % 3 WHEN 2 THEN ${value} END`;

/**
 * One dead lane with most of the backlog, thousands of lanes that are in backoff, paused or open, some with work; finished and failed rows,
 * new events that nobody takes, and old ones. Made without statistics (ANALYZE), as in production.
 */
const script = `
BEGIN;
${numbers(waitingLanes)}
INSERT INTO hookwell_lane (subscription_id, ready, held, next_due, opened_at, probe_step, probe_at, blocked_until,
  breaks, failures, failing_since)
SELECT printf('sub_wait_%06d', i), 0, i % 3 = 1, ${largeNow} + 1000 + i, ${ifOpen("1")}, ${ifOpen("300000")},
  ${ifOpen(`${largeNow} + 1000 + i`)}, ${ifOpen(`${largeNow} + 1000 + i`)}, (i % 3 = 2) * 10, (i % 3 = 2) * 10,
  ${ifOpen("i")} FROM n;
${numbers(readyLanes)}
INSERT INTO hookwell_lane (subscription_id, ready, held) SELECT printf('sub_ready_%03d', i), 1, 0 FROM n;
INSERT INTO hookwell_lane (subscription_id, ready, held) VALUES ('sub_dead', 1, 0);
${endpoints}
${numbers(pendingOnOneLane)}
INSERT INTO hookwell_delivery (${deliveryColumns})
SELECT printf('dlv_dead_%07d', i), 'live', 'evt_' || i, 'sub_dead', 'end_sub_dead', 'v', 'user.created', 'pending',
  0, 1, ${largeNow} - i, ${largeNow} - i, ${largeNow} - i, ${largeNow} - i FROM n;
${numbers(waitingLanes)}
INSERT INTO hookwell_delivery (${deliveryColumns})
SELECT printf('dlv_wait_%07d', i), 'live', 'evt_wait_' || i, printf('sub_wait_%06d', i),
  printf('end_sub_wait_%06d', i), 'v', 'user.created', 'pending', 1, 1, ${largeNow} + 1000 + i,
  ${largeNow} + 1000 + i, ${largeNow} - i, ${largeNow} - i FROM n;
${numbers(readyLanes * 100)}
INSERT INTO hookwell_delivery (${deliveryColumns})
SELECT printf('dlv_ready_%07d', i), 'live', 'evt_ready_' || i, printf('sub_ready_%03d', i % ${readyLanes} + 1),
  printf('end_sub_ready_%03d', i % ${readyLanes} + 1), 'v', 'user.created', 'pending', 0, 1, ${largeNow} - 5,
  ${largeNow} - 5, ${largeNow} - i, ${largeNow} - i FROM n;
${numbers(100_000)}
INSERT INTO hookwell_delivery (${deliveryColumns})
SELECT printf('dlv_done_%07d', i), 'live', 'evt_' || i, printf('sub_ready_%03d', i % ${readyLanes} + 1),
  printf('end_sub_ready_%03d', i % ${readyLanes} + 1), 'v', 'user.created',
  CASE i % 100 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' ELSE 'delivered' END, 1, 1, ${largeNow} - i,
  ${largeNow} - i, ${largeNow} - i, ${largeNow} - i FROM n;
${numbers(120_000)}
INSERT INTO hookwell_event (project_id, id, type, tenant_id, subject, revision, occurred_at, captured_at,
  content_hash, route, fanned_out, state, due_at, tries, data)
SELECT 'live', 'evt_' || i, 'user.created', '', 'user:' || (i / 10), i, ${largeNow} - i, ${largeNow} - i, 'h',
  CASE WHEN i % 4 THEN 'user.created' ELSE 'nobody.takes' END, 0,
  CASE i % 4 WHEN 0 THEN 'new' ELSE 'dispatched' END, 0, 0, '{}' FROM n;
INSERT INTO hookwell_body (project_id, event_id, variant, bytes)
SELECT project_id, event_id, 'v', CAST('{}' AS BLOB) FROM hookwell_delivery WHERE true ON CONFLICT DO NOTHING;
INSERT INTO hookwell_attempt (delivery_id, round, number, started_at, duration_ms)
SELECT id, 1, 1, 1, 1 FROM hookwell_delivery WHERE status = 'failed';
COMMIT;`;

/** Makes the large database. Its rows have no endpoint versions: nothing of it can be sent. */
export async function largeSqlite(): Promise<{ path: string; drop: () => void }> {
  const file = freshSqlite();
  const store = sqliteStore({ path: file.path });
  await store.migrations.migrate();
  await store.close();
  const database = new DatabaseSync(file.path);
  // A crash of the machine may cost this file.
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -300000");
  database.exec(script);
  database.close();
  return file;
}
