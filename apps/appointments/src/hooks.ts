import { createHookwell, defineEvents, userEnvelope } from "hookwell";
import { kysely } from "hookwell/kysely";
import { bookingEvents } from "./bookings/event-definitions.ts";
import { meetingLink } from "./bookings/meeting-link.ts";
import type { AppDatabase, AppTables } from "./database/schema.ts";
import { publishedUserExample, publishedUserSchema } from "./users/user-event-schema.ts";
import type { PublishedUser } from "./users/user-events.ts";

const userEvent = {
  schema: publishedUserSchema,
  subject: (user: PublishedUser) => `user:${user.id}`,
  envelope: userEnvelope,
};

/** Every event type of the application. A booking's meeting link is read from the database at first dispatch. */
export function appEvents(db: AppDatabase) {
  return defineEvents({
    "user.created": {
      ...userEvent,
      description: "An account was stored.",
      example: publishedUserExample,
    },
    "user.updated": {
      ...userEvent,
      description: "Published fields of a user changed: profile, e-mail verification, or active again.",
      example: { ...publishedUserExample, name: "Ada King" },
    },
    "user.deactivated": {
      ...userEvent,
      description: "A user is suspended, archived or deleted: take its access away.",
      example: { ...publishedUserExample, status: "suspended" },
    },
    ...bookingEvents(meetingLink(db)),
  });
}

type HookwellOptions = Parameters<typeof createHookwell>[0];

/** What differs between `npm start`, a worker beside it, and tests. */
export type AppHooksOptions = Pick<HookwellOptions, "store"> &
  Partial<
    Pick<
      HookwellOptions,
      "project" | "network" | "retry" | "metrics" | "logger" | "clock" | "timers" | "sender"
    >
  > & {
    /** The application's own tables, which the dispatcher reads too. */
    readonly db: AppDatabase;
  };

/** Hookwell as this application uses it: its transactions and its events. */
export function createAppHooks({ db, ...options }: AppHooksOptions) {
  return createHookwell({
    project: "live",
    ...options,
    tx: kysely<AppTables>(),
    tenants: "optional",
    events: appEvents(db),
  });
}

export type AppHooks = ReturnType<typeof createAppHooks>;
