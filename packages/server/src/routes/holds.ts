import type { z } from "@hono/zod-openapi";
import { type HoldSelector, type HookwellCore, NotFoundError } from "hookwell";
import type { Api } from "../http/api.ts";
import { type Caller, ownParts, visibilityOf } from "../http/caller.ts";
import { pageOf } from "../http/paging.ts";
import { apiProblem } from "../http/problems.ts";
import { idParams } from "../shapes/common.ts";
import { hold, holdToJson, newHold, releasedHold } from "../shapes/hold.ts";

const tag = "Holds";

export function addHoldRoutes(api: Api, { holds }: HookwellCore): void {
  api.route(
    {
      method: "post",
      path: "/v1/holds",
      id: "createHold",
      tag,
      summary: "Send nothing, nothing of a project, or nothing of a type, for now",
      description: [
        "Events are captured and dispatched as always; nothing that a hold covers is sent, by any process, until it is released. It takes effect with the next claim; a send in flight is finished.",
        "What two holds cover is sent when both are released. A key bound to a project may hold that project only.",
      ].join(" "),
      scopes: ["operate"],
      body: newHold,
      answers: {
        201: { description: "Held from now on.", schema: hold },
        200: { description: "Held already: as it is.", schema: hold },
      },
      example: { project_id: "live", reason: "The warehouse is being moved." },
    },
    async ({ caller, body }) => {
      const selector = selectorFor(caller, body);
      const { hold: record, created } = await holds.set(selector, {
        ...(body.reason !== undefined && { reason: body.reason }),
        ...(caller.name !== undefined && { heldBy: caller.name }),
      });
      return { status: created ? 201 : 200, body: holdToJson(record) };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/holds",
      id: "listHolds",
      tag,
      summary: "List what is held, newest first",
      description: "All of them, at most 100. A key bound to a project sees the hold of that project only.",
      scopes: ["read", "operate"],
      answers: { 200: { description: "One page.", schema: pageOf(hold) } },
    },
    async ({ caller }) => {
      const records = isBound(caller) ? [] : await holds.list(visibilityOf(caller));
      return { status: 200, body: { items: records.reverse().map(holdToJson), next_cursor: null } };
    },
  );

  api.route(
    {
      method: "delete",
      path: "/v1/holds/{id}",
      id: "releaseHold",
      tag,
      summary: "Release a hold",
      description: "What another hold covers stays held until that is released too.",
      scopes: ["operate"],
      params: idParams,
      answers: { 200: { description: "Released.", schema: releasedHold } },
    },
    async ({ caller, params }) => {
      const released = await holds.release({ id: params.id }, { visibility: visibilityOf(caller) });
      if (!released) throw new NotFoundError("hold", params.id);
      return { status: 200, body: { ...holdToJson(released.hold), left: released.left } };
    },
  );
}

/** A hold knows no tenant and no owner. */
function isBound({ tenantId, ownerId }: Caller): boolean {
  return tenantId !== undefined || ownerId !== undefined;
}

/** @throws ProblemError when it is more than the caller's own */
function selectorFor(caller: Caller, body: z.output<typeof newHold>): HoldSelector {
  if (isBound(caller))
    throw apiProblem("missing_scope", "Holds are not made on behalf of one tenant or owner.");
  if ("project_id" in body) {
    ownParts(caller, body);
    return { projectId: body.project_id };
  }
  if (caller.projectId !== undefined)
    throw apiProblem(
      "missing_scope",
      `The key is bound to project ${caller.projectId} and can hold that only.`,
    );
  return "type" in body ? { type: body.type } : { all: true };
}
