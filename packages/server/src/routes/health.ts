import { z } from "@hono/zod-openapi";
import type { HookwellCore } from "hookwell";
import { deliveryHealth } from "hookwell/environment";
import type { Api } from "../http/api.ts";
import type { ProblemCode } from "../http/problem-codes.ts";
import { apiProblem, type ProblemError } from "../http/problems.ts";
import { answeredTime, orNull } from "../shapes/common.ts";

const tag = "Health";
const ok = z.strictObject({ status: z.literal("ok") }).openapi("Health");
const deliveryHealthShape = z
  .strictObject({
    status: z.literal("ok"),
    oldest_due_at: answeredTime.nullable(),
    oldest_new_event_at: answeredTime.nullable(),
    max_lag_seconds: z.number(),
    holds: z.int().openapi({ description: "Holds in force: what they cover is not sent, and not late." }),
  })
  .openapi("DeliveryHealth");

export function addHealthRoutes(api: Api, hooks: HookwellCore, maxLagMs: number): void {
  api.open(
    "/healthz",
    {
      id: "getHealth",
      tag,
      summary: "The process answers",
      answers: { 200: { description: "It does.", schema: ok } },
    },
    () => ({ status: 200, body: { status: "ok" } }),
  );

  api.open(
    "/readyz",
    {
      id: "getReadiness",
      tag,
      summary: "Database, schema and encryption key are usable",
      answers: { 200: { description: "They are.", schema: ok } },
      errors: ["not_ready"],
    },
    async () => {
      try {
        await hooks.ready();
      } catch (error) {
        throw unavailable("not_ready", error);
      }
      return { status: 200, body: { status: "ok" } };
    },
  );

  api.open(
    "/healthz/delivery",
    {
      id: "getDeliveryHealth",
      tag,
      summary: "Webhooks leave in time: for alerts, not for probes",
      answers: { 200: { description: "They do.", schema: deliveryHealthShape } },
      errors: ["storage", "delivery_late"],
    },
    async () => {
      const health = await deliveryHealth(hooks, maxLagMs).catch((error: unknown) => {
        throw unavailable("storage", error);
      });
      if (health.late) throw apiProblem("delivery_late", health.late);
      return {
        status: 200,
        body: {
          status: "ok",
          oldest_due_at: orNull(health.oldestDueAt),
          oldest_new_event_at: orNull(health.oldestNewAt),
          max_lag_seconds: maxLagMs / 1000,
          holds: health.holds,
        },
      };
    },
  );
}

/** Probes are open to everybody: the code says what is wrong, the log has the words of the database. */
function unavailable(code: ProblemCode, cause: unknown): ProblemError {
  return apiProblem(
    code,
    "The database, its schema or the encryption key cannot be used now; the log of the server says why.",
    {
      cause,
    },
  );
}
