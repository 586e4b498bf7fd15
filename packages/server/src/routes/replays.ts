import type { HookwellCore } from "hookwell";
import type { Api } from "../http/api.ts";
import { narrowed, visibilityOf } from "../http/caller.ts";
import { emptyPage, pageAnswer, pageFrom, pageOf } from "../http/paging.ts";
import { idParams } from "../shapes/common.ts";
import { counted, toSelection } from "../shapes/delivery.ts";
import { madeReplay, newReplay, replay, replayQuery, replayToJson } from "../shapes/replay.ts";

const tag = "Replays";

export function addReplayRoutes(api: Api, { replays }: HookwellCore): void {
  api.route(
    {
      method: "post",
      path: "/v1/replays",
      id: "createReplay",
      tag,
      summary: "Send many deliveries again",
      description:
        "A job that the workers take on. Each delivery is queued once, as a new round with the same id and bytes, behind live deliveries of its subscription; one that is pending is left alone. At most 10,000 of a replay are pending at a time.",
      scopes: ["operate"],
      body: newReplay,
      answers: {
        200: { description: "With `dry_run`: how many it would find.", schema: counted },
        202: { description: "Made.", schema: madeReplay },
      },
      errors: ["not_found", "invalid_state"],
      example: {
        subscription_id: "sub_0198a6d2-7c1e-7d55-9f6b-2b1c6f9a4a10",
        since: "2026-01-31T12:00:00Z",
        status: ["failed", "missing"],
      },
    },
    async ({ caller, body }) => {
      const visibility = visibilityOf(caller);
      const { subscription_id: subscriptionId, filter, since, until, status } = body;
      const input = {
        ...(subscriptionId !== undefined && { subscriptionId }),
        ...(filter && { filter: toSelection(filter) }),
        since,
        ...(until && { until }),
        status,
      };
      if (body.dry_run) return { status: 200, body: await replays.count(input, visibility) };
      const { id, count } = await replays.create(input, { visibility });
      return { status: 202, body: { id, count } };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/replays",
      id: "listReplays",
      tag,
      summary: "List replays, newest first",
      scopes: ["read"],
      query: replayQuery,
      answers: { 200: { description: "One page.", schema: pageOf(replay) } },
    },
    async ({ caller, query }) => {
      const filter = narrowed(caller, {
        projectId: query.project_id,
        tenantId: query.tenant_id,
        ownerId: query.owner_id,
        status: query.status,
        subscriptionId: query.subscription_id,
      });
      if (!filter) return { status: 200, body: emptyPage };
      return { status: 200, body: pageAnswer(await replays.list(filter, pageFrom(query)), replayToJson) };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/replays/{id}",
      id: "getReplay",
      tag,
      summary: "Get one replay with its progress",
      scopes: ["read"],
      params: idParams,
      answers: { 200: { description: "The replay.", schema: replay } },
    },
    async ({ caller, params }) => ({
      status: 200,
      body: replayToJson(await replays.get(params.id, visibilityOf(caller))),
    }),
  );

  api.route(
    {
      method: "delete",
      path: "/v1/replays/{id}",
      id: "stopReplay",
      tag,
      summary: "Stop a replay",
      description:
        "It queues nothing more. What it has queued stays pending; `POST /v1/deliveries/cancel` with its `replay_id` cancels that too.",
      scopes: ["operate"],
      params: idParams,
      answers: { 200: { description: "As it is now.", schema: replay } },
      errors: ["invalid_state"],
    },
    async ({ caller, params }) => ({
      status: 200,
      body: replayToJson(await replays.cancel(params.id, { visibility: visibilityOf(caller) })),
    }),
  );
}
