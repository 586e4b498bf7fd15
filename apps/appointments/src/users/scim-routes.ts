import { type Context, Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { AppEnvironment } from "../http/environment.ts";
import type { ProblemError } from "../http/problem.ts";
import { readJson } from "../http/request-body.ts";
import { readPatchOp, ScimPatchError, scimChanges, userUrn } from "./scim-patch.ts";
import type { User } from "./user.ts";
import { requireAdmin } from "./user-access.ts";
import type { UserChangeCalls } from "./user-changes.ts";

const errorUrn = "urn:ietf:params:scim:api:messages:2.0:Error";

/** `/scim/v2`: what an identity provider needs to change and to deprovision a user (RFC 7644). */
export function scimRoutes(changes: UserChangeCalls): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();
  routes.patch("/Users/:id", async (context) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    requireAdmin(caller, "user", id);
    const operations = readPatchOp(await readJson(context));
    const user = await changes.change(caller, id, (before) => scimChanges(operations, before));
    return scimJson(context, 200, scimUser(user));
  });
  return routes;
}

function scimUser(user: User): Record<string, unknown> {
  return {
    schemas: [userUrn],
    id: user.id,
    userName: user.email,
    displayName: user.name,
    name: { formatted: user.name },
    active: user.status === "active",
    emails: [{ value: user.email, primary: true }],
    meta: {
      resourceType: "User",
      created: user.createdAt,
      lastModified: user.updatedAt,
      location: `/scim/v2/Users/${user.id}`,
    },
  };
}

/** The answer to an error below `/scim/v2`, in the words of RFC 7644 section 3.12. */
export function scimError(context: Context, error: ScimPatchError | ProblemError): Response {
  const [status, scimType]: [ContentfulStatusCode, string | undefined] =
    error instanceof ScimPatchError
      ? [400, error.scimType]
      : [
          error.status,
          error.code === "email_taken" ? "uniqueness" : error.status === 400 ? "invalidSyntax" : undefined,
        ];
  return scimJson(context, status, {
    schemas: [errorUrn],
    status: String(status),
    ...(scimType === undefined ? {} : { scimType }),
    detail: error.message,
  });
}

function scimJson(context: Context, status: ContentfulStatusCode, body: unknown): Response {
  const headers = { "content-type": "application/scim+json; charset=utf-8" };
  return context.newResponse(JSON.stringify(body), { status, headers });
}
