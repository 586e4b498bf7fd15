import { z } from "@hono/zod-openapi";
import { problemExample } from "./examples.ts";

/** RFC 9457, with the stable code, the id of the request, and each fault with its JSON pointer. */
export const problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().openapi({ description: "Stable; docs/reference/errors.md lists them." }),
    request_id: z.string(),
    errors: z.array(z.strictObject({ pointer: z.string(), message: z.string() })).optional(),
  })
  .openapi("Problem", { example: problemExample });
