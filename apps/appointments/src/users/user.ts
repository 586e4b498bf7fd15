import type { UsersTable } from "../database/schema.ts";
import type { UserStatus } from "./user-status.ts";

/** A user as the code works with it. Both halves of the application share this record. */
export interface User {
  readonly id: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly email: string;
  readonly name: string;
  readonly status: UserStatus;
  readonly emailVerified: boolean;
  readonly ianaTimezone: string;
  readonly isAdmin: boolean;
  /** Raised by every change that is published; the events of a user carry it. */
  readonly revision: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** What a change may set. */
export interface UserChanges {
  readonly email?: string;
  readonly name?: string;
  readonly status?: UserStatus;
  readonly emailVerified?: boolean;
  readonly ianaTimezone?: string;
  readonly isAdmin?: boolean;
}

/** E-mail addresses are the same when they differ only in case or in how their Unicode is composed. */
export function emailKey(email: string): string {
  return email.normalize("NFC").toLowerCase();
}

export function toRow(user: User): UsersTable {
  return {
    id: user.id,
    project_id: user.projectId,
    tenant_id: user.tenantId ?? "",
    email: user.email,
    email_key: emailKey(user.email),
    name: user.name,
    status: user.status,
    email_verified: user.emailVerified ? 1 : 0,
    iana_timezone: user.ianaTimezone,
    is_admin: user.isAdmin ? 1 : 0,
    revision: user.revision,
    created_at: user.createdAt,
    updated_at: user.updatedAt,
  };
}

export function fromRow(row: UsersTable): User {
  return {
    id: row.id,
    projectId: row.project_id,
    ...(row.tenant_id === "" ? {} : { tenantId: row.tenant_id }),
    email: row.email,
    name: row.name,
    status: row.status,
    emailVerified: row.email_verified === 1,
    ianaTimezone: row.iana_timezone,
    isAdmin: row.is_admin === 1,
    revision: row.revision,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** The user as the API shows it to those who may see it. */
export function toJson(user: User) {
  return {
    id: user.id,
    project_id: user.projectId,
    tenant_id: user.tenantId ?? null,
    email: user.email,
    name: user.name,
    status: user.status,
    email_verified: user.emailVerified,
    iana_timezone: user.ianaTimezone,
    is_admin: user.isAdmin,
    revision: user.revision,
    created_at: user.createdAt,
    updated_at: user.updatedAt,
  };
}
