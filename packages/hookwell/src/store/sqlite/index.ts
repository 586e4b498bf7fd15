export type { MigrationStatus, Migrations } from "../migrations.ts";
export { generateKey } from "../sealing.ts";
export type { OpenSqlite, SqliteHandle, SqliteStatement } from "./driver.ts";
export type { SqliteOptions } from "./options.ts";
export { SqliteOutbox, sqliteStore } from "./sqlite-outbox.ts";
