import type { Mutation } from "../mutation.ts";

const app = "apps/appointments/src";

/** Users, invitations and bookings. */
export const applicationFaults: readonly Mutation[] = [
  {
    name: "a change of nothing published is an update",
    file: `${app}/users/user-events.ts`,
    from: "return fields.some((field) => then[field] !== now[field])",
    to: "return fields.length > 0",
    item: "field-faults B4",
  },
  {
    name: "an admin of a tenant sees the users of all",
    file: `${app}/users/user-access.ts`,
    from: "return isAdmin && projectId === user.projectId && (tenantId === undefined || tenantId === user.tenantId);",
    to: "return isAdmin && projectId === user.projectId;",
    item: "field-faults G8",
  },
  {
    name: "a user is deleted without a word",
    file: `${app}/users/user-changes.ts`,
    from: "await emit(trx, caller, [{ before }]);",
    to: "",
    item: "field-faults B2",
  },
  {
    name: "who invited is not told of the booking",
    file: `${app}/bookings/capture.ts`,
    from: "const audience = [booking.host_id, ...(facts.invitation ? [facts.invitation.creatorId] : [])];",
    to: "const audience = [booking.host_id];",
    item: "bookings 3",
  },
  {
    name: "an event is dated when the booking was made",
    file: `${app}/bookings/capture.ts`,
    from: "occurredAt: booking.updated_at,",
    to: "occurredAt: booking.created_at,",
    item: "bookings 11",
  },
  {
    name: "a move stands although its event could not be captured",
    file: `${app}/bookings/capture.ts`,
    from: "throw new CaptureFailedError(cause);",
    to: "void cause;",
    item: "bookings 15",
  },
  {
    name: "a cancelled booking can be cancelled again",
    file: `${app}/bookings/cancel.ts`,
    from: '.where("status", "=", "confirmed")',
    to: "",
    item: "bookings 18",
  },
  {
    name: "a move to the same time is a move",
    file: `${app}/bookings/reschedule.ts`,
    from: 'return instantOf(time.start_at, "ceil") === own.start && start === own.start ? "same" : { start, end };',
    to: "return { start, end };",
    item: "bookings 21",
  },
  {
    name: "an invitation ends without a word",
    file: `${app}/invitations/lifecycle.ts`,
    from: "await emitLifecycle(hooks, trx, after, lifecycleData(after, move), move);",
    to: "",
    item: "bookings 24",
  },
  {
    name: "without a selection a body has every field",
    file: "packages/hookwell/src/dispatch/render.ts",
    from: "selected.length > 0 ? selected : rules.default",
    to: "selected.length > 0 ? selected : known",
    item: "bookings 44",
  },
  {
    name: "a link of an older revision is told as the newer one's",
    file: `${app}/bookings/location.ts`,
    from: 'return booking.location_revision === booking.revision ? booking.location_value : "";',
    to: "return booking.location_value;",
    item: "bookings 57",
  },
  {
    name: "the log shows the tokens of customers",
    file: `${app}/http/redact.ts`,
    from: '.replaceAll(tokenPaths, "/$1:[token]")',
    to: "",
    item: "bookings 72",
  },
];
