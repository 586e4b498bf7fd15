import type { HookwellCore, SubscriptionChanges, SubscriptionRecord } from "hookwell";
import type { z } from "zod";
import type { Answer, Api } from "../http/api.ts";
import { narrowed, ownParts, visibilityOf } from "../http/caller.ts";
import { emptyPage, pageAnswer, pageFrom, pageOf } from "../http/paging.ts";
import { idParams } from "../shapes/common.ts";
import {
  createdSubscription,
  newSubscription,
  subscription,
  subscriptionPatch,
  subscriptionQuery,
  subscriptionToJson,
} from "../shapes/subscription.ts";

const tag = "Subscriptions";

export function addSubscriptionRoutes(api: Api, hooks: HookwellCore): void {
  const { subscriptions } = hooks;

  api.route(
    {
      method: "post",
      path: "/v1/subscriptions",
      id: "createSubscription",
      tag,
      summary: "Subscribe an endpoint to events",
      scopes: ["manage"],
      body: newSubscription,
      answers: { 201: { description: "Made.", schema: createdSubscription } },
      errors: ["blocked_address"],
      example: {
        project_id: "live",
        url: "https://example.com/webhooks",
        event_types: ["order.*"],
        description: "Warehouse",
        metadata: { team: "logistics" },
      },
    },
    async ({ caller, body }) => {
      const created = await subscriptions.create({
        ...ownParts(caller, body),
        url: body.url,
        eventTypes: body.event_types,
        fields: body.fields,
        headers: body.headers,
        description: body.description,
        metadata: body.metadata,
        externalId: body.external_id,
        secret: body.secret,
        rateLimit: body.rate_limit
          ? { limit: body.rate_limit.limit, perSeconds: body.rate_limit.per_seconds }
          : undefined,
        maxInFlight: body.max_in_flight,
        ordering: body.ordering,
      });
      const { secret, version } = created;
      return { status: 201, body: { ...subscriptionToJson(created), secret }, version };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/subscriptions",
      id: "listSubscriptions",
      tag,
      summary: "List subscriptions, newest first",
      scopes: ["read"],
      query: subscriptionQuery,
      answers: { 200: { description: "One page.", schema: pageOf(subscription) } },
    },
    async ({ caller, query }) => {
      const filter = narrowed(caller, {
        projectId: query.project_id,
        tenantId: query.tenant_id,
        ownerId: query.owner_id,
        status: query.status,
        urlHost: query.url_host?.toLowerCase(),
        externalId: query.external_id,
      });
      if (!filter) return { status: 200, body: emptyPage };
      const page = await subscriptions.list(filter, pageFrom(query));
      return { status: 200, body: pageAnswer(page, subscriptionToJson) };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/subscriptions/{id}",
      id: "getSubscription",
      tag,
      summary: "Get one subscription",
      scopes: ["read"],
      params: idParams,
      answers: { 200: { description: "The subscription.", schema: subscription } },
      conditional: true,
    },
    async ({ caller, params }) => shown(await subscriptions.get(params.id, visibilityOf(caller))),
  );

  api.route(
    {
      method: "patch",
      path: "/v1/subscriptions/{id}",
      id: "updateSubscription",
      tag,
      summary: "Change a subscription (merge-patch)",
      description:
        "RFC 7396: what is not named stays, null removes; in metadata, headers (their names in any case) and rate_limit too. A new url or new headers hold for what is queued already; its bodies and ids stay.",
      scopes: ["manage"],
      params: idParams,
      body: subscriptionPatch,
      mediaTypes: ["application/merge-patch+json", "application/json"],
      answers: { 200: { description: "As it is now.", schema: subscription } },
      errors: ["invalid_state", "blocked_address"],
      conditional: true,
      example: { event_types: ["order.*", "refund.*"], metadata: { team: null, contact: "ops" } },
    },
    async ({ caller, params, body, ifVersion }) =>
      shown(
        await subscriptions.update(params.id, changesOf(body), {
          visibility: visibilityOf(caller),
          ifVersion,
        }),
      ),
  );

  api.route(
    {
      method: "delete",
      path: "/v1/subscriptions/{id}",
      id: "deleteSubscription",
      tag,
      summary: "Delete a subscription",
      description: "What is pending is cancelled.",
      scopes: ["manage"],
      params: idParams,
      answers: { 204: { description: "Deleted." } },
      conditional: true,
    },
    async ({ caller, params, ifVersion }) => {
      await subscriptions.delete(params.id, { visibility: visibilityOf(caller), ifVersion });
      return { status: 204 };
    },
  );

  const actions = {
    pause: ["Pause a subscription", "Events queue and are not sent. A disabled one is 409."],
    resume: [
      "Resume a paused subscription",
      "What is queued is sent. An active one stays as it is; a disabled one is 409: it is enabled instead.",
    ],
    disable: ["Disable a subscription", "Events are not queued; what is pending is held."],
    enable: [
      "Enable a disabled subscription",
      "What was held is sent. An active one stays as it is; a paused one is 409: it is resumed instead.",
    ],
  } as const;
  for (const action of ["pause", "resume", "disable", "enable"] as const) {
    const [summary, description] = actions[action];
    api.route(
      {
        method: "post",
        path: `/v1/subscriptions/{id}/${action}`,
        id: `${action}Subscription`,
        tag,
        summary,
        description,
        scopes: ["operate", "manage"],
        repeatable: true,
        params: idParams,
        answers: { 200: { description: "As it is now.", schema: subscription } },
        errors: ["invalid_state"],
        conditional: true,
      },
      async ({ caller, params, ifVersion }) =>
        shown(await subscriptions[action](params.id, { visibility: visibilityOf(caller), ifVersion })),
    );
  }
}

function shown(record: SubscriptionRecord): Answer {
  return { status: 200, body: subscriptionToJson(record), version: record.version };
}

/** RFC 7396. Objects are merged by the store, in the transaction of the change. */
function changesOf(patch: z.output<typeof subscriptionPatch>): SubscriptionChanges {
  return {
    url: patch.url,
    eventTypes: patch.event_types === null ? [] : patch.event_types,
    fields: patch.fields,
    ...(patch.headers === null && { headers: null }),
    description: patch.description,
    ...(patch.metadata === null && { metadata: null }),
    externalId: patch.external_id,
    ...(patch.rate_limit === null && { rateLimit: null }),
    maxInFlight: patch.max_in_flight,
    ordering: patch.ordering === null ? "none" : patch.ordering,
    merge: {
      ...(patch.metadata && { metadata: patch.metadata }),
      ...(patch.headers && { headers: patch.headers }),
      ...(patch.rate_limit && {
        rateLimit: { limit: patch.rate_limit.limit, perSeconds: patch.rate_limit.per_seconds },
      }),
    },
  };
}
