import type { HostKind } from "./host.ts";
import { onKyselyPostgres, onPg } from "./postgres-hosts.ts";
import { onBetterSqlite3, onKyselySqlite, onNodeSqlite } from "./sqlite-hosts.ts";

/** Whose transactions overlap in one database. */
export const postgresHosts: readonly HostKind[] = [onPg, onKyselyPostgres];

/** Every client library that Hookwell joins. */
export const hosts: readonly HostKind[] = [...postgresHosts, onKyselySqlite, onBetterSqlite3, onNodeSqlite];
