import type { HookwellCore } from "hookwell";
import type { Api } from "../http/api.ts";
import { narrowed, visibilityOf } from "../http/caller.ts";
import { emptyPage, pageAnswer, pageFrom, pageOf } from "../http/paging.ts";
import { idParams } from "../shapes/common.ts";
import {
  bulkCancel,
  counted,
  delivery,
  deliveryDetail,
  deliveryDetailToJson,
  deliveryQuery,
  deliveryToJson,
  toSelection,
} from "../shapes/delivery.ts";

const tag = "Deliveries";

export function addDeliveryRoutes(api: Api, hooks: HookwellCore): void {
  const { deliveries } = hooks;

  api.route(
    {
      method: "get",
      path: "/v1/deliveries",
      id: "listDeliveries",
      tag,
      summary: "List deliveries, newest first",
      scopes: ["read"],
      query: deliveryQuery,
      answers: { 200: { description: "One page.", schema: pageOf(delivery) } },
    },
    async ({ caller, query }) => {
      const filter = narrowed(caller, {
        projectId: query.project_id,
        tenantId: query.tenant_id,
        status: query.status,
        subscriptionId: query.subscription_id,
        eventId: query.event_id,
        type: query.type,
        subject: query.subject,
        urlHost: query.url_host?.toLowerCase(),
        errorCode: query.error_code,
        replayId: query.replay_id,
        since: query.since,
        until: query.until,
      });
      if (!filter) return { status: 200, body: emptyPage };
      const page = await deliveries.list(filter, pageFrom(query));
      return { status: 200, body: pageAnswer(page, deliveryToJson) };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/deliveries/{id}",
      id: "getDelivery",
      tag,
      summary: "Get one delivery with its body and attempts",
      scopes: ["read"],
      params: idParams,
      answers: { 200: { description: "The delivery.", schema: deliveryDetail } },
    },
    async ({ caller, params }) => ({
      status: 200,
      body: deliveryDetailToJson(await deliveries.get(params.id, visibilityOf(caller))),
    }),
  );

  api.route(
    {
      method: "post",
      path: "/v1/deliveries/cancel",
      id: "cancelDeliveries",
      tag,
      summary: "Cancel many pending deliveries",
      description:
        "All that the filter names, in short transactions; the answer comes when it is done, with how many. An outcome of one that is just being sent is ignored.",
      scopes: ["operate"],
      body: bulkCancel,
      answers: { 200: { description: "How many were cancelled, or would be.", schema: counted } },
      example: { url_host: "old.example.com", dry_run: true },
    },
    async ({ caller, body: { since, until, dry_run, ...filter } }) => ({
      status: 200,
      body: await deliveries.cancelMany(
        { ...toSelection(filter), since, until },
        { visibility: visibilityOf(caller), dryRun: dry_run },
      ),
    }),
  );

  const actions = {
    retry: [
      "Send a delivery again",
      "A final one opens a new round with the same ids and bytes; a pending one is due now; one in flight answers 409.",
    ],
    cancel: [
      "Cancel a pending delivery",
      "It is not sent again; the outcome of a send in flight is ignored.",
    ],
  } as const;
  for (const action of ["retry", "cancel"] as const) {
    const [summary, description] = actions[action];
    api.route(
      {
        method: "post",
        path: `/v1/deliveries/{id}/${action}`,
        id: `${action}Delivery`,
        tag,
        summary,
        description,
        scopes: ["operate"],
        params: idParams,
        answers: { 200: { description: "As it is now.", schema: delivery } },
        errors: ["invalid_state"],
      },
      async ({ caller, params }) => ({
        status: 200,
        body: deliveryToJson(await deliveries[action](params.id, { visibility: visibilityOf(caller) })),
      }),
    );
  }
}
