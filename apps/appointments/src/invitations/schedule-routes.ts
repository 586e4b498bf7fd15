import { Hono } from "hono";
import type { AppEnvironment } from "../http/environment.ts";
import { ProblemError } from "../http/problem.ts";
import type { Invitation } from "./invitation.ts";
import { findInvitationByToken } from "./invitation-queries.ts";
import { type OfferedSlotsDeps, offeredSlots, slotsToJson } from "./offered-slots.ts";
import { readSlotsQuery } from "./slots-query.ts";

/** `/v1/schedule/{token}/slots`: no key, the token is what opens it. */
export function scheduleRoutes(deps: OfferedSlotsDeps): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();
  routes.get("/:token/slots", async (context) => {
    const invitation = requireToken(await findInvitationByToken(deps.db, context.req.param("token")));
    const zone = invitation.window.timeZone ?? "UTC";
    const range = (now: Date) => readSlotsQuery(context.req.query(), now, zone);
    return context.json(slotsToJson(await offeredSlots(deps, invitation, range, "gone")));
  });
  return routes;
}

/** @throws ProblemError 404: the same for a token that is malformed and one that is unknown, and without the token */
export function requireToken(invitation: Invitation | undefined): Invitation {
  if (invitation === undefined)
    throw new ProblemError("not_found", "There is no invitation with this token. Check the link.");
  return invitation;
}
