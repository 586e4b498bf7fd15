import type { HookwellCore, SubscriptionChanges } from "hookwell";
import type { z } from "zod";
import type { Api } from "../http/api.ts";
import { narrowed, ownParts, visibilityOf } from "../http/caller.ts";
import { emptyPage, pageAnswer, pageFrom, pageOf } from "../http/paging.ts";
import { invalidRequest } from "../http/problems.ts";
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
      errors: [409],
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
      return { status: 201, body: { ...subscriptionToJson(created), secret: created.secret } };
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
    },
    async ({ caller, params }) => ({
      status: 200,
      body: subscriptionToJson(await subscriptions.get(params.id, visibilityOf(caller))),
    }),
  );

  api.route(
    {
      method: "patch",
      path: "/v1/subscriptions/{id}",
      id: "updateSubscription",
      tag,
      summary: "Change a subscription (merge-patch)",
      description: "A new url or new headers hold for what is queued already; its bodies and ids stay.",
      scopes: ["manage"],
      params: idParams,
      body: subscriptionPatch,
      mediaTypes: ["application/merge-patch+json", "application/json"],
      answers: { 200: { description: "As it is now.", schema: subscription } },
      errors: [409],
    },
    async ({ caller, params, body }) => {
      const visibility = visibilityOf(caller);
      const changes = await changesOf(body, () => subscriptions.get(params.id, visibility));
      const updated = await subscriptions.update(params.id, changes, { visibility });
      return { status: 200, body: subscriptionToJson(updated) };
    },
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
    },
    async ({ caller, params }) => {
      await subscriptions.delete(params.id, { visibility: visibilityOf(caller) });
      return { status: 204 };
    },
  );

  const actions = {
    pause: ["Pause a subscription", "Events queue and are not sent."],
    resume: ["Resume a paused subscription", "What is queued is sent."],
    disable: ["Disable a subscription", "Events are not queued; what is pending is held."],
    enable: ["Enable a disabled subscription", "What was held is sent."],
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
        params: idParams,
        answers: { 200: { description: "As it is now.", schema: subscription } },
        errors: [409],
      },
      async ({ caller, params }) => ({
        status: 200,
        body: subscriptionToJson(
          await subscriptions[action](params.id, { visibility: visibilityOf(caller) }),
        ),
      }),
    );
  }
}

type Current = {
  metadata?: Readonly<Record<string, string>>;
  rateLimit?: { limit: number; perSeconds: number };
};

/** RFC 7396 on the fields that are objects: what the patch does not name stays. */
async function changesOf(
  patch: z.output<typeof subscriptionPatch>,
  current: () => Promise<Current>,
): Promise<SubscriptionChanges> {
  const nested = patch.metadata || patch.rate_limit ? await current() : {};
  return {
    url: patch.url,
    eventTypes: patch.event_types === null ? [] : patch.event_types,
    fields: patch.fields,
    headers: patch.headers,
    description: patch.description,
    metadata: patch.metadata ? merged(nested.metadata, patch.metadata) : patch.metadata,
    externalId: patch.external_id,
    rateLimit: patch.rate_limit ? mergedRate(nested.rateLimit, patch.rate_limit) : patch.rate_limit,
    maxInFlight: patch.max_in_flight,
    ordering: patch.ordering === null ? "none" : patch.ordering,
  };
}

function merged(
  current: Readonly<Record<string, string>> = {},
  patch: Readonly<Record<string, string | null>>,
): Readonly<Record<string, string>> {
  const entries = new Map(Object.entries(current));
  for (const [name, value] of Object.entries(patch))
    if (value === null) entries.delete(name);
    else entries.set(name, value);
  return Object.fromEntries(entries);
}

function mergedRate(
  current: { limit: number; perSeconds: number } | undefined,
  patch: { limit?: number; per_seconds?: number },
): { limit: number; perSeconds: number } {
  const limit = patch.limit ?? current?.limit;
  const perSeconds = patch.per_seconds ?? current?.perSeconds;
  if (limit !== undefined && perSeconds !== undefined) return { limit, perSeconds };
  const missing = limit === undefined ? "limit" : "per_seconds";
  throw invalidRequest([{ pointer: `/rate_limit/${missing}`, message: "is missing" }]);
}
