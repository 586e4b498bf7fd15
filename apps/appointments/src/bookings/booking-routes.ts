import { Hono } from "hono";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppEnvironment } from "../http/environment.ts";
import { readPage, writeCursor } from "../http/paging.ts";
import { check, readJson } from "../http/request-body.ts";
import { keepToItself } from "../http/token-routes.ts";
import { bookingSteps } from "../side-effects/booking-steps.ts";
import type { Caller } from "../users/user-access.ts";
import { bookingCalls } from "./book.ts";
import { canManageBooking, canReadBooking, visibleBooking } from "./booking-access.ts";
import { bookingToJson } from "./booking-json.ts";
import { listBookings } from "./booking-queries.ts";
import {
  bookingListQuery,
  cancelSchema,
  locationSchema,
  ordinaryBookingSchema,
  reassignSchema,
  rescheduleSchema,
} from "./booking-schemas.ts";
import { bookingCancels } from "./cancel.ts";
import type { BookingDeps } from "./deps.ts";
import { saveLocation } from "./location.ts";
import { reassign } from "./reassign.ts";
import { bookingMoves } from "./reschedule.ts";

/** `/v1/bookings`: for the assigned hosts and the admins, and to read for the creator of the invitation. */
export function bookingRoutes(deps: BookingDeps): Hono<AppEnvironment> {
  const { db } = deps;
  const routes = new Hono<AppEnvironment>();
  const calls = { book: bookingCalls(deps), move: bookingMoves(deps), cancel: bookingCancels(deps) };

  /** Before the body is read, so that a 400 never tells that a booking exists. @throws ProblemError 404 */
  const requireManaged = (caller: Caller, id: string) =>
    visibleBooking(db, id, (facts) => canManageBooking(caller, facts));
  const shown = async ({ id }: Pick<BookingsTable, "id">) =>
    bookingToJson(await visibleBooking(db, id, () => true));

  routes.post("/", async (context) => {
    const choice = check(ordinaryBookingSchema, await readJson(context));
    const { booking, manageToken } = await calls.book.ordinary(context.get("caller"), choice);
    context.header("Location", `/v1/bookings/${booking.id}`);
    keepToItself(context);
    return context.json({ ...(await shown(booking)), manage_token: manageToken }, 201);
  });

  routes.get("/", async (context) => {
    const query = context.req.query();
    const filter = check(bookingListQuery, query);
    const { items, more } = await listBookings(db, context.get("caller"), filter, readPage(query));
    const last = items.at(-1)?.booking;
    const next = more && last ? writeCursor({ at: last.created_at, id: last.id }) : null;
    return context.json({ items: items.map(bookingToJson), next_cursor: next });
  });

  routes.get("/:id", async (context) => {
    const caller = context.get("caller");
    const isVisible = (facts: Parameters<typeof canReadBooking>[1]) => canReadBooking(caller, facts);
    const facts = await visibleBooking(db, context.req.param("id"), isVisible);
    return context.json({
      ...bookingToJson(facts),
      side_effects: await bookingSteps(db, facts.booking.id),
    });
  });

  routes.patch("/:id/reschedule", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    await requireManaged(caller, id);
    const time = check(rescheduleSchema, await readJson(context));
    return context.json(await shown(await calls.move.byStaff(caller, id, time)));
  });

  routes.post("/:id/cancel", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    await requireManaged(caller, id);
    const reason = await readReason(context);
    return context.json(await shown(await calls.cancel.byStaff(caller, id, reason)));
  });

  routes.post("/:id/reassign", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    await visibleBooking(db, id, (facts) => canReadBooking(caller, facts));
    const { host_id: hostId } = check(reassignSchema, await readJson(context));
    return context.json(await shown(await reassign(deps, caller, id, hostId)));
  });

  routes.put("/:id/location", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    const { booking } = await requireManaged(caller, id);
    const { location_value: value, revision } = check(locationSchema, await readJson(context));
    await saveLocation(db, id, { value, revision: revision ?? booking.revision });
    return context.json(await shown({ id }));
  });

  return routes;
}

/** The reason of a cancellation; a request without a body has none. @throws ProblemError 400 */
export async function readReason(context: Parameters<typeof readJson>[0]): Promise<string> {
  const hasBody =
    Number(context.req.header("content-length") ?? "0") > 0 || context.req.header("transfer-encoding");
  const { reason } = hasBody ? check(cancelSchema, await readJson(context)) : { reason: "" };
  return reason?.trim() ?? "";
}
