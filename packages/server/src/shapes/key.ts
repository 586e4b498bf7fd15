import { z } from "@hono/zod-openapi";
import { pageQuery } from "../http/paging.ts";
import { scopes } from "../http/scopes.ts";
import { answeredTime, moment, name, text } from "./common.ts";
import { keyExample } from "./examples.ts";

export { keyToJson } from "hookwell/environment";

const shape = {
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.string()),
  project_id: z.string().nullable(),
  created_at: answeredTime,
  expires_at: answeredTime.nullable(),
  last_used_at: answeredTime.nullable(),
};

export const newKey = z
  .strictObject({
    name: text(255).min(1),
    scopes: z.array(z.enum(scopes)).min(1).max(scopes.length),
    project_id: name.optional().openapi({ description: "The key sees this project only." }),
    expires_at: moment.optional().openapi({ description: "Absent = does not expire." }),
  })
  .openapi("NewKey");

export const key = z.strictObject(shape).openapi("Key", { example: keyExample });
export const createdKey = z
  .strictObject({ ...shape, key: z.string().openapi({ description: "Shown here and never again." }) })
  .openapi("CreatedKey");
export const keyQuery = z.strictObject({
  project_id: name.optional().openapi({ description: "Keys of this project only." }),
  ...pageQuery,
});
