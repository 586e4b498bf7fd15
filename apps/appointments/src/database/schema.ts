import type { Kysely, Transaction } from "kysely";
import type { UserStatus } from "../users/user-status.ts";
import type { SchedulingTables } from "./scheduling-tables.ts";

/**
 * The application's tables, the same on SQLite and PostgreSQL: times are RFC 3339 text in UTC with
 * milliseconds (so they sort as text), truth values are 0 and 1, an absent tenant is "".
 */
export interface AppTables extends SchedulingTables {
  readonly users: UsersTable;
  readonly api_keys: ApiKeysTable;
  readonly received_webhooks: ReceivedWebhooksTable;
}

export interface UsersTable {
  readonly id: string;
  readonly project_id: string;
  readonly tenant_id: string;
  readonly email: string;
  /** The e-mail address as it is compared: NFC, lower case. Unique in its project and tenant. */
  readonly email_key: string;
  readonly name: string;
  readonly status: UserStatus;
  readonly email_verified: number;
  readonly iana_timezone: string;
  readonly is_admin: number;
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ApiKeysTable {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  /** SHA-256 of the key, hex. The key itself is nowhere. */
  readonly hash: string;
  readonly created_at: string;
}

/** What the receiver page shows: webhooks that reached this process, newest kept. */
export interface ReceivedWebhooksTable {
  readonly id: string;
  readonly receiver: string;
  readonly received_at: string;
  readonly webhook_id: string;
  readonly delivery_id: string;
  readonly attempt: string;
  readonly event_type: string;
  /** "" = verified, else why not. */
  readonly signature_fault: string;
  readonly body_signature_fault: string;
  /** 1 when the same webhook id was received here before. */
  readonly is_repeat: number;
  readonly body: string;
}

export type AppDatabase = Kysely<AppTables>;
export type AppTransaction = Transaction<AppTables>;
