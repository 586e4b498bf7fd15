export type { MigrationStatus, Migrations } from "../migrations.ts";
export { generateKey } from "../sealing.ts";
export type { SqliteOptions } from "./options.ts";
export { SqliteOutbox, sqliteStore } from "./sqlite-outbox.ts";
