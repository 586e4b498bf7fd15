import { Hono } from "hono";
import { findEventType } from "../event-types/event-type-queries.ts";
import type { AppEnvironment } from "../http/environment.ts";
import { ProblemError } from "../http/problem.ts";
import { check, readJson } from "../http/request-body.ts";
import { findInvitationByToken } from "../invitations/invitation-queries.ts";
import { whyUnusable } from "../invitations/invitation-slots.ts";
import { slotsToJson } from "../invitations/offered-slots.ts";
import { requireToken } from "../invitations/schedule-routes.ts";
import { readSlotsQuery } from "../invitations/slots-query.ts";
import { bookingCalls } from "./book.ts";
import { readReason } from "./booking-routes.ts";
import { bookSchema, rescheduleSchema } from "./booking-schemas.ts";
import { bookingCancels } from "./cancel.ts";
import type { BookingDeps } from "./deps.ts";
import { managedBookingId } from "./manage-token.ts";
import { movableSlots } from "./move-slots.ts";
import { bookingMoves } from "./reschedule.ts";

/** `/v1/schedule/{token}/book`: no key, the invitation's token is what opens it. */
export function bookRoutes(deps: BookingDeps): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();
  const book = bookingCalls(deps);
  routes.post("/:token/book", async (context) => {
    const invitation = requireToken(await findInvitationByToken(deps.db, context.req.param("token")));
    const eventType = await findEventType(deps.db, invitation.eventTypeId);
    const reason = whyUnusable(invitation, eventType, deps.now());
    if (reason !== undefined || eventType === undefined) throw new ProblemError("gone", reason ?? "");
    const choice = check(bookSchema, await readJson(context));
    const { booking, manageToken } = await book.byInvitation(invitation, eventType, choice);
    const { id, start_at, end_at, status } = booking;
    return context.json({ id, start_at, end_at, status, manage_token: manageToken }, 201);
  });
  return routes;
}

/** `/manage/{token}/…`: what the customer does with a booking. No key, the manage token is what opens it. */
export function manageRoutes(deps: BookingDeps): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();
  const calls = { move: bookingMoves(deps), cancel: bookingCancels(deps) };
  const bookingOf = async (token: string): Promise<string> => {
    const id = await managedBookingId(deps.db, token, deps.now());
    if (id === undefined)
      throw new ProblemError("not_found", "There is no booking with this token. Check the link.");
    return id;
  };

  routes.get("/:token/slots", async (context) => {
    const id = await bookingOf(context.req.param("token"));
    const range = (now: Date) => readSlotsQuery(context.req.query(), now, "UTC");
    return context.json(slotsToJson(await movableSlots(deps, id, range)));
  });

  routes.post("/:token/reschedule", async (context) => {
    const token = context.req.param("token");
    const id = await bookingOf(token);
    const time = check(rescheduleSchema, await readJson(context));
    const { start_at, end_at, status } = await calls.move.byCustomer(id, time);
    // It stays valid until its own expiry.
    return context.json({ id, start_at, end_at, status, manage_token: token });
  });

  routes.post("/:token/cancel", async (context) => {
    const id = await bookingOf(context.req.param("token"));
    const reason = await readReason(context);
    const { start_at, end_at, status, cancellation_reason } = await calls.cancel.byCustomer(id, reason);
    return context.json({ id, start_at, end_at, status, cancellation_reason });
  });

  return routes;
}
