import type { HostKind } from "./host.ts";
import { onKyselyPostgres, onPg } from "./postgres-hosts.ts";
import { onBetterSqlite3, onKyselySqlite, onNodeSqlite } from "./sqlite-hosts.ts";

/** Every client library that Hookwell joins. */
export const hosts: readonly HostKind[] = [
  onPg,
  onKyselyPostgres,
  onKyselySqlite,
  onBetterSqlite3,
  onNodeSqlite,
];
