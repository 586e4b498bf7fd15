import { z } from "@hono/zod-openapi";
import { eventType } from "./common.ts";
import { attempt } from "./delivery.ts";

export { testSendToJson } from "hookwell/environment";

export const testSendRequest = z
  .strictObject({
    event_type: eventType.optional().openapi({
      description:
        "Its example is sent. Absent = the first type of the catalogue that the subscription takes and that has an example, or else `hookwell.test`.",
      example: "user.created",
    }),
  })
  .openapi("TestSendRequest");

export const testSend = z
  .strictObject({
    event_id: z.string().openapi({ description: "The `webhook-id` that was sent. It is stored nowhere." }),
    event_type: z.string(),
    attempt,
  })
  .openapi("TestSend");
