import type { Kysely } from "kysely";
import { type Migration, type MigrationProvider, Migrator } from "kysely/migration";
import { databaseFailure } from "./database-failure.ts";
import { bookingRevisionsMigration, schedulingMigration } from "./scheduling-migration.ts";

type Database = Kysely<unknown>;

/**
 * The application's own migrations, as code so that no bundler loses them. Names sort in the order they run;
 * a published one is never edited. Column types are those that SQLite and PostgreSQL both understand.
 */
const migrations: Readonly<Record<string, Migration>> = {
  "0001_users": {
    async up(db: Database): Promise<void> {
      await db.schema
        .createTable("users")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("project_id", "text", (column) => column.notNull())
        .addColumn("tenant_id", "text", (column) => column.notNull())
        .addColumn("email", "text", (column) => column.notNull())
        .addColumn("email_key", "text", (column) => column.notNull())
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("status", "text", (column) => column.notNull())
        .addColumn("email_verified", "integer", (column) => column.notNull())
        .addColumn("iana_timezone", "text", (column) => column.notNull())
        .addColumn("is_admin", "integer", (column) => column.notNull())
        .addColumn("revision", "integer", (column) => column.notNull())
        .addColumn("created_at", "text", (column) => column.notNull())
        .addColumn("updated_at", "text", (column) => column.notNull())
        .addUniqueConstraint("users_email_unique", ["project_id", "tenant_id", "email_key"])
        .execute();
      await db.schema
        .createIndex("users_by_time")
        .on("users")
        .columns(["project_id", "created_at", "id"])
        .execute();
    },
  },
  "0002_api_keys": {
    async up(db: Database): Promise<void> {
      await db.schema
        .createTable("api_keys")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("hash", "text", (column) => column.notNull().unique())
        .addColumn("created_at", "text", (column) => column.notNull())
        .execute();
      await db.schema.createIndex("api_keys_by_user").on("api_keys").column("user_id").execute();
    },
  },
  "0003_received_webhooks": {
    async up(db: Database): Promise<void> {
      await db.schema
        .createTable("received_webhooks")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("receiver", "text", (column) => column.notNull())
        .addColumn("received_at", "text", (column) => column.notNull())
        .addColumn("webhook_id", "text", (column) => column.notNull())
        .addColumn("delivery_id", "text", (column) => column.notNull())
        .addColumn("attempt", "text", (column) => column.notNull())
        .addColumn("event_type", "text", (column) => column.notNull())
        .addColumn("signature_fault", "text", (column) => column.notNull())
        .addColumn("body_signature_fault", "text", (column) => column.notNull())
        .addColumn("is_repeat", "integer", (column) => column.notNull())
        .addColumn("body", "text", (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex("received_webhooks_by_webhook")
        .on("received_webhooks")
        .columns(["receiver", "webhook_id"])
        .execute();
    },
  },
  "0004_scheduling": schedulingMigration,
  "0005_booking_revisions": bookingRevisionsMigration,
};

const provider: MigrationProvider = { getMigrations: async () => ({ ...migrations }) };

/**
 * Brings the application's tables up to date, or to the step named.
 * @throws StorageError naming the step that failed
 */
export async function migrateApp<Tables>(db: Kysely<Tables>, upTo?: string): Promise<void> {
  const migrator = new Migrator({
    db,
    provider,
    migrationTableName: "app_migration",
    migrationLockTableName: "app_migration_lock",
  });
  const { error, results } = await (upTo === undefined
    ? migrator.migrateToLatest()
    : migrator.migrateTo(upTo));
  if (error === undefined) return;
  const failed = results?.find((result) => result.status === "Error")?.migrationName;
  throw databaseFailure(
    `bring the application's tables up to date${failed ? ` (step ${failed})` : ""}`,
    error,
  );
}
