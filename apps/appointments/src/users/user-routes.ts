import { type Context, Hono } from "hono";
import { z } from "zod";
import type { AppDatabase } from "../database/schema.ts";
import type { AppEnvironment } from "../http/environment.ts";
import { readPage, writeCursor } from "../http/paging.ts";
import { notFound } from "../http/problem.ts";
import { check, readJson } from "../http/request-body.ts";
import { text } from "../http/text.ts";
import type { ApiKeyCalls } from "../keys/api-keys.ts";
import { emailKey, toJson, type User, type UserChanges } from "./user.ts";
import { type Caller, canManage, canSee, requireAdmin } from "./user-access.ts";
import type { UserChangeCalls } from "./user-changes.ts";
import { findUser, listUsers } from "./user-queries.ts";
import {
  importSchema,
  newKeySchema,
  newUserSchema,
  ownProfileSchema,
  profileSchema,
} from "./user-schemas.ts";

export interface UserRouteDeps {
  readonly db: AppDatabase;
  readonly changes: UserChangeCalls;
  readonly keys: ApiKeyCalls;
}

const listQuery = z.object({
  status: z.enum(["active", "suspended", "archived"]).optional(),
  email: text({ max: 254 }).optional(),
  tenant_id: text({ max: 255 }).optional(),
});

/** `/v1/users`. Only admins create, import, suspend, archive, delete and edit others; a user edits itself. */
export function userRoutes({ db, changes, keys }: UserRouteDeps): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();

  routes.post("/", async (context) => {
    const caller = context.get("caller");
    requireAdmin(caller, "route", "POST /v1/users");
    const input = check(newUserSchema, await readJson(context));
    const [user] = await changes.create(caller, [input], () => "");
    context.header("Location", `/v1/users/${user!.id}`);
    return context.json(toJson(user!), 201);
  });

  routes.post("/import", async (context) => {
    const caller = context.get("caller");
    requireAdmin(caller, "route", "POST /v1/users/import");
    const { users } = check(importSchema, await readJson(context));
    const created = await changes.create(caller, users, (index) => `/users/${index}`);
    return context.json({ users: created.map(toJson) }, 201);
  });

  routes.get("/", async (context) => {
    const query = context.req.query();
    const { email, status, tenant_id: tenantId } = check(listQuery, query);
    const filter = {
      ...(status === undefined ? {} : { status }),
      ...(email === undefined ? {} : { emailKey: emailKey(email) }),
      ...(tenantId === undefined ? {} : { tenantId }),
    };
    const { items, more } = await listUsers(db, context.get("caller"), filter, readPage(query));
    const last = items.at(-1);
    const next = more && last ? writeCursor({ at: last.createdAt, id: last.id }) : null;
    return context.json({ items: items.map(toJson), next_cursor: next });
  });

  routes.get("/me", (context) => context.json(toJson(context.get("caller").user)));

  routes.get("/:id", async (context) =>
    context.json(toJson(await visibleUser(db, context.get("caller"), context.req.param("id")))),
  );

  routes.patch("/:id", async (context) => {
    const caller = context.get("caller");
    const given = context.req.param("id");
    const id = given === "me" ? caller.user.id : given;
    // The row's visibility is looked at before the body, so that a 400 never tells that a user exists.
    const target = await visibleUser(db, caller, id);
    const profile = check(
      canManage(caller, target) ? profileSchema : ownProfileSchema,
      await readJson(context),
    );
    return context.json(
      toJson(await changes.change(caller, id, (before) => profileChanges(before, profile))),
    );
  });

  routes.delete("/:id", async (context) => {
    await changes.remove(context.get("caller"), context.req.param("id"));
    return context.body(null, 204);
  });

  routes.post("/:id/verify-email", async (context) => {
    const id = context.req.param("id");
    const user = await changes.change(context.get("caller"), id, () => ({ emailVerified: true }));
    return context.json(toJson(user));
  });

  const byAdmin = async (context: Context<AppEnvironment, "/:id">, changed: UserChanges) => {
    const caller = context.get("caller");
    const id = context.req.param("id");
    requireAdmin(caller, "user", id);
    return context.json(toJson(await changes.change(caller, id, () => changed)));
  };
  routes.post("/:id/suspend", (context) => byAdmin(context, { status: "suspended" }));
  routes.post("/:id/reactivate", (context) => byAdmin(context, { status: "active" }));
  routes.post("/:id/archive", (context) => byAdmin(context, { status: "archived" }));

  routes.post("/:id/api-keys", async (context) => {
    const caller = context.get("caller");
    const id = (await visibleUser(db, caller, context.req.param("id"))).id;
    const { name } = check(newKeySchema, await readJson(context));
    context.header("Cache-Control", "no-store");
    return context.json(await keys.create(caller, id, name), 201);
  });

  return routes;
}

/** @throws ProblemError 404 */
async function visibleUser(db: AppDatabase, caller: Caller, id: string): Promise<User> {
  const user = await findUser(db, id);
  if (user === undefined || !canSee(caller, user)) throw notFound("user", id);
  return user;
}

/** An address that changes is not verified any more. */
export function profileChanges(
  before: User,
  profile: {
    readonly email?: string | undefined;
    readonly name?: string | undefined;
    readonly iana_timezone?: string | undefined;
    readonly is_admin?: boolean | undefined;
  },
): UserChanges {
  const { email, name, iana_timezone: ianaTimezone, is_admin: isAdmin } = profile;
  return {
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(email !== undefined && emailKey(email) !== emailKey(before.email) ? { emailVerified: false } : {}),
    ...(ianaTimezone === undefined ? {} : { ianaTimezone }),
    ...(isAdmin === undefined ? {} : { isAdmin }),
  };
}
