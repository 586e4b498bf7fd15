import type { User } from "./user.ts";

/** What the events of a user publish. Nothing outside this list ever leaves, whatever columns a user gains. */
export interface PublishedUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  /** The status after the change; "deleted" when the account is gone. */
  readonly status: User["status"] | "deleted";
  readonly email_verified: boolean;
}

export interface UserEvent {
  readonly type: "user.created" | "user.updated" | "user.deactivated";
  readonly data: PublishedUser;
}

function published(user: User): PublishedUser {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    status: user.status,
    email_verified: user.emailVerified,
  };
}

/**
 * The one place that decides which event a change of a user makes, from the published fields before and after.
 * `before` absent = the account is new, `after` absent = it is deleted. A change of nothing published makes none.
 */
export function userEventFor(before: User | undefined, after: User | undefined): UserEvent | undefined {
  if (after === undefined) {
    if (before === undefined) return undefined;
    return { type: "user.deactivated", data: { ...published(before), status: "deleted" } };
  }
  const now = published(after);
  if (before === undefined) return { type: "user.created", data: now };
  const then = published(before);
  if (then.status !== now.status && now.status !== "active") return { type: "user.deactivated", data: now };
  const fields = Object.keys(now) as (keyof PublishedUser)[];
  return fields.some((field) => then[field] !== now[field]) ? { type: "user.updated", data: now } : undefined;
}
