import type { HookwellCore } from "hookwell";
import type { Api } from "../http/api.ts";
import { visibilityOf } from "../http/caller.ts";
import { idParams } from "../shapes/common.ts";
import { rotatedSecret, secretRotation } from "../shapes/secret.ts";

export function addSecretRoutes(api: Api, { subscriptions }: HookwellCore): void {
  api.route(
    {
      method: "post",
      path: "/v1/subscriptions/{id}/rotate-secret",
      id: "rotateSubscriptionSecret",
      tag: "Subscriptions",
      summary: "Give a subscription a new signing secret",
      description: [
        "Every attempt from now on, those of pending deliveries too, carries one signature for each secret that is valid then, so a receiver verifies with the old one or the new one.",
        "The older ones end by themselves after the overlap. At most five are valid at once; a sixth is 409 `too_many_secrets`.",
      ].join(" "),
      scopes: ["manage"],
      params: idParams,
      body: secretRotation,
      bodyOptional: true,
      answers: { 200: { description: "Rotated.", schema: rotatedSecret } },
      errors: ["invalid_state", "too_many_secrets"],
      example: { overlap_seconds: 3600 },
    },
    async ({ caller, params, body }) => {
      const { secret } = await subscriptions.rotateSecret(
        params.id,
        {
          ...(body.overlap_seconds !== undefined && { overlapMs: body.overlap_seconds * 1000 }),
          ...(body.secret !== undefined && { secret: body.secret }),
        },
        { visibility: visibilityOf(caller) },
      );
      return { status: 200, body: { secret } };
    },
  );
}
