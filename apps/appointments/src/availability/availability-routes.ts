import { Hono } from "hono";
import type { AppEnvironment } from "../http/environment.ts";
import { invalid } from "../http/problem.ts";
import { check, readJson } from "../http/request-body.ts";
import { availabilityProblems, availabilitySchema } from "./availability-schemas.ts";
import {
  type AvailabilityDeps,
  readAvailability,
  replaceAvailability,
  visibleHost,
} from "./user-availability.ts";

/** `/v1/users/{id}/availability`, mounted at `/v1/users`: for the user itself and its admins. */
export function availabilityRoutes(deps: AvailabilityDeps): Hono<AppEnvironment> {
  const routes = new Hono<AppEnvironment>();
  const idOf = (given: string, own: string): string => (given === "me" ? own : given);

  routes.get("/:id/availability", async (context) => {
    const caller = context.get("caller");
    const user = await visibleHost(deps.db, caller, idOf(context.req.param("id"), caller.user.id));
    return context.json(await readAvailability(deps.db, user.id));
  });

  routes.put("/:id/availability", async (context) => {
    const caller = context.get("caller");
    // Its visibility is looked at before the body, so that a 400 never tells that a user exists.
    const user = await visibleHost(deps.db, caller, idOf(context.req.param("id"), caller.user.id));
    const input = check(availabilitySchema, await readJson(context));
    const problems = availabilityProblems(input);
    if (problems.length > 0) throw invalid(problems);
    await replaceAvailability(deps, caller, user.id, input);
    return context.json(await readAvailability(deps.db, user.id));
  });

  return routes;
}
