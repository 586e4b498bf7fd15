import { z } from "@hono/zod-openapi";
import { answeredTime, name, text } from "./common.ts";

export { holdToJson } from "hookwell/environment";

const filter = z
  .string()
  .max(130)
  .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*(\.\*)?$/, 'must be an event type, or a prefix followed by ".*"')
  .openapi({ example: "booking.*" });

const reason = text(1000).optional().openapi({ description: "Why, for whoever finds it." });

/** One of the three. */
export const newHold = z
  .union([
    z.strictObject({ all: z.literal(true, "give exactly one of all (true), project_id and type"), reason }),
    z.strictObject({ project_id: name, reason }),
    z.strictObject({ type: filter, reason }),
  ])
  .openapi("NewHold");

const shape = {
  id: z.string(),
  kind: z.enum(["all", "project", "type"]),
  project_id: z.string().nullable(),
  type: z.string().nullable(),
  reason: z.string().nullable(),
  held_by: z.string().nullable().openapi({ description: "The name of the key that set it." }),
  created_at: answeredTime,
};

export const hold = z.strictObject(shape).openapi("Hold");

export const releasedHold = z
  .strictObject({
    ...shape,
    left: z.int().openapi({
      description:
        "Deliveries that were set aside and are not due again yet, counted up to 10,000; workers go on with them.",
    }),
  })
  .openapi("ReleasedHold");
