import { Hono } from "hono";
import type { AppEnvironment } from "../http/environment.ts";
import { check, readJson } from "../http/request-body.ts";
import { keepToItself } from "../http/token-routes.ts";
import { cancelInvitation } from "./cancel.ts";
import { invitationToJson } from "./invitation.ts";
import { findInvitation, listInvitations, requireInvitation } from "./invitation-queries.ts";
import { invitationListQuery, newInvitationSchema } from "./invitation-schemas.ts";
import { type InvitationDeps, issueInvitation } from "./issue.ts";
import { type OfferedSlotsDeps, offeredSlots, slotsToJson } from "./offered-slots.ts";
import { readSlotsQuery } from "./slots-query.ts";

export interface InvitationRouteDeps extends InvitationDeps, OfferedSlotsDeps {
  /** Where customers reach the application, without a slash at the end; absent = where the request came to. */
  readonly publicUrl?: string;
}

/** `/v1/scheduling-invitations`: for their creator and the admins; others get 404. */
export function invitationRoutes(deps: InvitationRouteDeps): Hono<AppEnvironment> {
  const { db, now } = deps;
  const routes = new Hono<AppEnvironment>();

  routes.post("/", async (context) => {
    const input = check(newInvitationSchema, await readJson(context));
    const { invitation, token } = await issueInvitation(deps, context.get("caller"), input);
    const origin = deps.publicUrl ?? new URL(context.req.url).origin;
    context.header("Location", `/v1/scheduling-invitations/${invitation.id}`);
    keepToItself(context);
    const secret = { token, scheduling_url: `${origin}/s/${token}` };
    return context.json({ ...invitationToJson(invitation, now()), ...secret }, 201);
  });

  routes.get("/", async (context) => {
    const {
      limit,
      offset,
      status,
      event_type_id: eventTypeId,
    } = check(invitationListQuery, context.req.query());
    const filter = {
      ...(status === undefined ? {} : { status }),
      ...(eventTypeId === undefined ? {} : { eventTypeId }),
    };
    const at = now();
    const { items, more } = await listInvitations(db, context.get("caller"), filter, {
      limit,
      offset,
      now: at,
    });
    return context.json({
      items: items.map((item) => invitationToJson(item, at)),
      next_offset: more ? offset + limit : null,
    });
  });

  routes.get("/:id", async (context) => {
    const id = context.req.param("id");
    const invitation = requireInvitation(context.get("caller"), await findInvitation(db, id), id);
    return context.json(invitationToJson(invitation, now()));
  });

  routes.get("/:id/slots", async (context) => {
    const id = context.req.param("id");
    const caller = context.get("caller");
    const invitation = requireInvitation(caller, await findInvitation(db, id), id);
    const zone = invitation.window.timeZone ?? caller.user.ianaTimezone;
    const range = (at: Date) => readSlotsQuery(context.req.query(), at, zone);
    return context.json(slotsToJson(await offeredSlots(deps, invitation, range, "conflict")));
  });

  routes.post("/:id/cancel", async (context) => {
    const cancelled = await cancelInvitation(deps, context.get("caller"), context.req.param("id"));
    return context.json(invitationToJson(cancelled, now()));
  });

  return routes;
}
