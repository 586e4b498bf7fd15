import { replaceAvailability } from "./availability/user-availability.ts";
import type { AppDatabase } from "./database/schema.ts";
import { createEventType } from "./event-types/event-type-changes.ts";
import { ProblemError } from "./http/problem.ts";
import { type InvitationDeps, issueInvitation } from "./invitations/issue.ts";
import { dayMs, timestampOf } from "./scheduling/calendar.ts";
import type { User } from "./users/user.ts";
import type { Caller } from "./users/user-access.ts";

/** Event type of the example. */
export const exampleSlug = "introduction";
const validDays = 30;
const workdays = [1, 2, 3, 4, 5];

export interface ExampleInvitation {
  /** Of the invitation when it was made now: it cannot be shown again. */
  readonly token?: string;
}

/**
 * Sees to it that there is something to book: the first admin as a host with hours, an event type, and one active
 * invitation, made by the calls that the API uses too. What an earlier start made stays as it is now; undefined when
 * the project has event types of its own and no example.
 */
export async function ensureExampleInvitation(
  deps: InvitationDeps,
  host: User,
): Promise<ExampleInvitation | undefined> {
  const caller: Caller = { user: host, keyId: "first-run" };
  const found = await eventTypesOf(deps.db, host);
  if (found.length > 0 && !found.includes(exampleSlug)) return undefined;
  if (found.length === 0) await makeEventType(deps, caller);
  if (await wasInvitedTo(deps.db, host)) return {};
  const { token } = await issueInvitation(
    deps,
    caller,
    {
      event_type_slug: exampleSlug,
      recipient: { name: "Grace Hopper", email: "grace@example.com" },
      expires_at: timestampOf(deps.now().getTime() + validDays * dayMs),
      external: { system: "crm", reference: "CASE-1042", url: "https://crm.example.com/cases/1042" },
    },
    // Like the first user, the example is announced to nobody: the receiver page begins with what people do.
    { actor: { type: "system", id: "first-run" }, audience: [] },
  );
  return { token };
}

async function eventTypesOf(db: AppDatabase, { projectId }: User): Promise<string[]> {
  const rows = await db
    .selectFrom("event_types")
    .select("slug")
    .where("project_id", "=", projectId)
    .orderBy("slug")
    .execute();
  return rows.map((row) => row.slug);
}

async function wasInvitedTo(db: AppDatabase, { projectId }: User): Promise<boolean> {
  const row = await db
    .selectFrom("scheduling_invitations as invitation")
    .innerJoin("event_types as event_type", "event_type.id", "invitation.event_type_id")
    .select("invitation.id")
    .where("event_type.project_id", "=", projectId)
    .where("event_type.slug", "=", exampleSlug)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

async function makeEventType(deps: InvitationDeps, caller: Caller): Promise<void> {
  const { id } = caller.user;
  const hours = await deps.db
    .selectFrom("availability_rules")
    .select("id")
    .where("user_id", "=", id)
    .limit(1)
    .executeTakeFirst();
  if (hours === undefined)
    await replaceAvailability(deps, caller, id, {
      rules: workdays.map((day) => ({ day_of_week: day, start_time: "09:00", end_time: "17:00" })),
      overrides: [],
    });
  try {
    await createEventType(deps, caller, {
      slug: exampleSlug,
      name: "Introduction",
      duration_minutes: 30,
      location_type: "link",
      location_value: "https://meet.example.com/introduction",
      hosts: [{ user_id: id, role: "required" }],
      questions: [
        { label: "What would you like to talk about?", type: "text", required: true },
        { label: "How did you hear of us?", type: "select", options: ["A friend", "A talk", "The web"] },
        { label: "Send me a summary afterwards", type: "checkbox" },
      ],
    });
  } catch (error) {
    // Another replica that starts at the same time made it first.
    if (!(error instanceof ProblemError && error.status === 409)) throw error;
  }
}
