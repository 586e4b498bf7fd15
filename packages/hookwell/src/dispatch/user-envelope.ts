import type { EnvelopeEvent } from "../model/definition.ts";

/** The user record as application code (camelCase) or JSON (snake_case) has it. */
interface UserData {
  readonly id?: unknown;
  readonly email?: unknown;
  readonly name?: unknown;
  readonly status?: unknown;
  readonly emailVerified?: unknown;
  readonly email_verified?: unknown;
}

/**
 * The body of the user-lifecycle events: `{id, type, project_id, tenant_id?, occurred_at, user, revision?,
 * actor?}`. `user` is an allow-list of `id, email, name?, status?, email_verified`: no other column of the
 * record can reach a body. Empty tenant, name and status are left out; `email_verified` is always there.
 */
export function userEnvelope(event: EnvelopeEvent, data: unknown): Record<string, unknown> {
  const user = (data ?? {}) as UserData;
  return {
    id: event.id,
    type: event.type,
    project_id: event.projectId,
    ...(event.tenantId ? { tenant_id: event.tenantId } : {}),
    occurred_at: event.occurredAt.toISOString(),
    user: {
      id: user.id,
      email: user.email,
      ...(user.name ? { name: user.name } : {}),
      ...(user.status ? { status: user.status } : {}),
      email_verified: Boolean(user.emailVerified ?? user.email_verified),
    },
    ...(event.revision === undefined ? {} : { revision: event.revision }),
    ...(event.actor ? { actor: { type: event.actor.type, id: event.actor.id } } : {}),
  };
}
