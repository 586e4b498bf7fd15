import type { HookwellCore } from "hookwell";
import type { Api } from "../http/api.ts";
import { type Caller, narrowed, ownParts } from "../http/caller.ts";
import { emptyPage, pageAnswer, pageFrom, pageOf } from "../http/paging.ts";
import { apiProblem, invalidRequest } from "../http/problems.ts";
import { idParams } from "../shapes/common.ts";
import { createdKey, key, keyQuery, keyToJson, newKey } from "../shapes/key.ts";

const tag = "Keys";

export function addKeyRoutes(api: Api, hooks: HookwellCore): void {
  const { keys } = hooks;

  api.route(
    {
      method: "post",
      path: "/v1/keys",
      id: "createKey",
      tag,
      summary: "Make a key",
      scopes: ["admin"],
      body: newKey,
      answers: { 201: { description: "Made.", schema: createdKey } },
      example: { name: "checkout service", scopes: ["emit"], project_id: "live" },
    },
    async ({ caller, body }) => {
      refuseBound(caller);
      const { projectId } = ownParts(caller, body);
      if (body.expires_at && body.expires_at <= hooks.clock())
        throw invalidRequest([{ pointer: "/expires_at", message: "must be in the future" }]);
      const created = await keys.create({
        name: body.name,
        scopes: [...new Set(body.scopes)],
        projectId,
        expiresAt: body.expires_at,
      });
      return { status: 201, body: { ...keyToJson(created), key: created.key } };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/keys",
      id: "listKeys",
      tag,
      summary: "List keys, newest first",
      scopes: ["admin"],
      query: keyQuery,
      answers: { 200: { description: "One page.", schema: pageOf(key) } },
    },
    async ({ caller, query }) => {
      refuseBound(caller);
      const filter = narrowed(caller, { projectId: query.project_id });
      if (!filter) return { status: 200, body: emptyPage };
      const page = await keys.list({ ...pageFrom(query), projectId: filter.projectId });
      return { status: 200, body: pageAnswer(page, keyToJson) };
    },
  );

  api.route(
    {
      method: "delete",
      path: "/v1/keys/{id}",
      id: "deleteKey",
      tag,
      summary: "Delete a key",
      description: "It stops working at once.",
      scopes: ["admin"],
      params: idParams,
      answers: { 204: { description: "Deleted." } },
    },
    async ({ caller, params }) => {
      refuseBound(caller);
      await keys.delete(params.id, { projectId: caller.projectId });
      return { status: 204 };
    },
  );
}

/** A key knows no tenant and no owner, so a caller bound to one could make itself a wider one. */
function refuseBound(caller: Caller): void {
  if (caller.tenantId !== undefined || caller.ownerId !== undefined)
    throw apiProblem("missing_scope", "Keys are not managed on behalf of one tenant or owner.");
}
