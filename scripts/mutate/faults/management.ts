import { library, type Mutation } from "../mutation.ts";

/** Subscriptions, operators, retention, lists and migrations. */
export const managementFaults: readonly Mutation[] = [
  {
    name: "on PostgreSQL a cancelled send may be repeated while it goes on",
    file: `${library}/store/postgres/delivery-sql.ts`,
    from: `UPDATE \${s}.delivery d SET status = 'cancelled', reason = 'by_hand', updated_at = t.now`,
    to: `UPDATE \${s}.delivery d SET status = 'cancelled', reason = 'by_hand', lease_until = NULL, updated_at = t.now`,
    item: "field-faults J2",
  },
  {
    name: "on SQLite a second move leaves what the first one moved behind",
    file: `${library}/store/sqlite/subscriptions.ts`,
    from: 'SET superseded_by = ? WHERE subscription_id = ? AND id <> ?"',
    to: 'SET superseded_by = ? WHERE subscription_id = ? AND id <> ? AND superseded_by IS NULL"',
    item: "field-faults H3",
  },
  {
    name: "disabled after one bad hour",
    file: `${library}/store/lane-state.ts`,
    from: "(failingSince ?? now) <= now - disable.overMs;",
    to: "true;",
    item: "field-faults H4",
  },
  {
    name: "on SQLite the window of an event is not kept",
    file: `${library}/store/sqlite/pruning.ts`,
    from: "if (event && integer(event.captured_at) > window) continue;",
    to: "",
    item: "field-faults I4",
  },
  {
    name: "on PostgreSQL an event goes before its last delivery",
    file: `${library}/store/postgres/upkeep-sql.ts`,
    from: `WHERE seen.state <> 'new' AND (\n    SELECT 1 FROM \${s}.delivery d WHERE d.event_id = seen.id AND d.project_id = seen.project_id LIMIT 1) IS NULL`,
    to: `WHERE seen.state <> 'new' AND (\n    SELECT 1 FROM \${s}.delivery d WHERE d.event_id = seen.id AND d.status = 'pending' LIMIT 1) IS NULL`,
    item: "field-faults I4",
  },
  {
    name: "on SQLite nobody waits for the write lock",
    file: `${library}/store/sqlite/connection.ts`,
    from: "if (!isBusy(error) || waited >= this.#patienceMs) throw storageError(error, this.path);",
    to: "throw storageError(error, this.path);",
    item: "field-faults I5",
  },
  {
    name: "any build works with a newer schema",
    file: `${library}/store/migrations.ts`,
    from: "usable: current >= wanted && compatibleFrom <= wanted,",
    to: "usable: current >= wanted,",
    item: "field-faults I6",
  },
  {
    name: "on PostgreSQL pages are cut by time alone",
    file: `${library}/store/postgres/lists.ts`,
    from: `\`(\${time}, \${id}) < (\${where.use(String(after.at.getTime()))}::text::bigint, \${where.use(after.id)}::text)\`,`,
    to: `\`\${time} < \${where.use(String(after.at.getTime()))}::text::bigint\`,`,
    item: "field-faults J1",
  },
  {
    name: "on SQLite a delivery is visible to every tenant",
    file: `${library}/store/sqlite/subscription-rows.ts`,
    from: "(tenantId === undefined || record.tenantId === tenantId) &&",
    to: "",
    item: "field-faults G8",
  },
  {
    name: "on PostgreSQL the alert route sees nobody's lateness",
    file: `${library}/store/postgres/upkeep-sql.ts`,
    from: "SELECT min(greatest(head.due_at, r.rests_until)) FROM runnable r",
    to: "SELECT max(greatest(head.due_at, r.rests_until)) FROM runnable r",
    item: "field-faults D2",
  },
];
