import { Hono } from "hono";
import { type DeliveryDetail, isHookwellError, type SubscriptionRecord, ValidationError } from "hookwell";
import type { AppHooks } from "../hooks.ts";
import type { AppEnvironment } from "../http/environment.ts";
import { readPage, writeCursor } from "../http/paging.ts";
import { invalid, notFound } from "../http/problem.ts";
import { check, readJson } from "../http/request-body.ts";
import type { Caller } from "../users/user-access.ts";
import { newWebhookSchema, webhookChangesSchema } from "./webhook-schemas.ts";

/** Deliveries that are shown of a webhook. */
const newest = 50;

/** `/v1/webhooks`: the subscriptions that the caller owns, for the events that concern it. */
export function webhookRoutes(hooks: AppHooks): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();

  routes.post("/", async (context) => {
    const { user } = context.get("caller");
    const { url, events, fields } = check(newWebhookSchema, await readJson(context));
    const created = await hooks.subscriptions
      .create({
        projectId: user.projectId,
        ...(user.tenantId === undefined ? {} : { tenantId: user.tenantId }),
        ownerId: user.id,
        url,
        eventTypes: events,
        ...(fields ? { fields } : {}),
      })
      .catch(inWordsOfThisApi(""));
    context.header("Location", `/v1/webhooks/${created.id}`);
    context.header("Cache-Control", "no-store");
    return context.json({ ...toJson(created), secret: created.secret }, 201);
  });

  routes.get("/", async (context) => {
    const { limit, after } = readPage(context.req.query());
    const { items, next } = await hooks.subscriptions.list(ownBy(context.get("caller")), {
      limit,
      ...(after === undefined ? {} : { after: { at: new Date(after.at), id: after.id } }),
    });
    const cursor = next === undefined ? null : writeCursor({ at: next.at.toISOString(), id: next.id });
    return context.json({ items: items.map(toJson), next_cursor: cursor });
  });

  routes.get("/:id", async (context) =>
    context.json(toJson(await own(hooks, context.get("caller"), context.req.param("id")))),
  );

  routes.patch("/:id", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    let webhook = await own(hooks, caller, id);
    const changes = check(webhookChangesSchema, await readJson(context));
    const { url, events, fields, is_active: isActive } = changes;
    const options = { visibility: ownBy(caller) };
    const say = inWordsOfThisApi(id);
    if (url !== undefined || events !== undefined || fields !== undefined)
      webhook = await hooks.subscriptions
        .update(
          id,
          {
            ...(url === undefined ? {} : { url }),
            ...(events === undefined ? {} : { eventTypes: events }),
            ...(fields === undefined ? {} : { fields }),
          },
          options,
        )
        .catch(say);
    if (isActive !== undefined && isActive !== (webhook.status === "active"))
      webhook = await hooks.subscriptions[isActive ? "enable" : "disable"](id, options).catch(say);
    return context.json(toJson(webhook));
  });

  routes.delete("/:id", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    await own(hooks, caller, id);
    await hooks.subscriptions.delete(id, { visibility: ownBy(caller) }).catch(inWordsOfThisApi(id));
    return context.body(null, 204);
  });

  routes.get("/:id/deliveries", async (context) => {
    const caller = context.get("caller");
    const { id, projectId } = await own(hooks, caller, context.req.param("id"));
    const { items } = await hooks.deliveries.list({ projectId, subscriptionId: id }, { limit: newest });
    const deliveries = await Promise.all(items.map((delivery) => hooks.deliveries.get(delivery.id)));
    return context.json({ items: deliveries.map(deliveryToJson) });
  });

  return routes;
}

/** What the caller owns; anything else does not exist for it. */
function ownBy({ user }: Caller) {
  return { projectId: user.projectId, ownerId: user.id };
}

/** @throws ProblemError 404 */
async function own(hooks: AppHooks, caller: Caller, id: string): Promise<SubscriptionRecord> {
  const webhook = await hooks.subscriptions.get(id, ownBy(caller)).catch(inWordsOfThisApi(id));
  if (webhook.status === "deleted") throw notFound("webhook", id);
  return webhook;
}

/** Hookwell's refusals as problems of this API, whose fields have other names. */
function inWordsOfThisApi(id: string) {
  return (error: unknown): never => {
    if (error instanceof ValidationError)
      throw invalid(
        error.problems.map(({ pointer, message }) => ({
          pointer: pointer.replace(/^\/eventTypes/, "/events"),
          message,
        })),
      );
    if (isHookwellError(error) && (error.code === "not_found" || error.code === "invalid_state"))
      throw notFound("webhook", id);
    throw error;
  };
}

function toJson(webhook: SubscriptionRecord) {
  return {
    id: webhook.id,
    url: webhook.url,
    events: webhook.eventTypes,
    fields: webhook.fields ?? null,
    is_active: webhook.status === "active",
    status: webhook.status,
    status_reason: webhook.statusReason ?? null,
    created_at: webhook.createdAt.toISOString(),
    updated_at: webhook.updatedAt.toISOString(),
  };
}

function deliveryToJson(delivery: DeliveryDetail) {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    event: delivery.type,
    status: delivery.status,
    reason: delivery.reason ?? null,
    attempts: delivery.attempts,
    status_code: delivery.attemptLog.at(-1)?.statusCode ?? null,
    error_code: delivery.errorCode ?? null,
    error: delivery.lastError ?? null,
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
    attempt_log: delivery.attemptLog.map((attempt) => ({
      number: attempt.number,
      started_at: attempt.startedAt.toISOString(),
      duration_ms: attempt.durationMs,
      status_code: attempt.statusCode ?? null,
      error_code: attempt.errorCode ?? null,
      error: attempt.error ?? null,
    })),
  };
}
