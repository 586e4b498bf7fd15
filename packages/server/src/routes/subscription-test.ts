import type { HookwellCore } from "hookwell";
import type { Api } from "../http/api.ts";
import { visibilityOf } from "../http/caller.ts";
import { idParams } from "../shapes/common.ts";
import { testSend, testSendRequest, testSendToJson } from "../shapes/test-send.ts";

export function addTestSendRoute(api: Api, { subscriptions }: HookwellCore): void {
  api.route(
    {
      method: "post",
      path: "/v1/subscriptions/{id}/test",
      id: "testSubscription",
      tag: "Subscriptions",
      summary: "Send an example to the endpoint now",
      description: [
        "One signed send with the header `x-hookwell-test: true`, whatever its outcome: 200 with the attempt, which says in `error_code` what went wrong (`tls_expired`, `http_401`, …).",
        "Nothing is stored, retried or counted. A paused or disabled subscription is tested too; a deleted one is 409. The answer comes within the time limit of a send, 15 s.",
      ].join(" "),
      scopes: ["operate", "manage"],
      params: idParams,
      body: testSendRequest,
      bodyOptional: true,
      answers: { 200: { description: "The attempt, successful or not.", schema: testSend } },
      errors: ["invalid_state", "unknown_event_type", "no_example", "send_aborted"],
      example: { event_type: "order.paid" },
    },
    async ({ caller, params, body }) => {
      const sent = await subscriptions.test(params.id, {
        visibility: visibilityOf(caller),
        ...(body.event_type !== undefined && { eventType: body.event_type }),
      });
      return { status: 200, body: testSendToJson(sent) };
    },
  );
}
