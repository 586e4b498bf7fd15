import type { Context, MiddlewareHandler } from "hono";
import type { ClientAddress } from "./client-address.ts";
import { ProblemError } from "./problem.ts";
import { rateLimiter } from "./rate-limit.ts";

/** How often one address may use the customers' pages and routes in a minute. */
export interface TokenRouteLimits {
  readonly reads: number;
  readonly submissions: number;
}

export const defaultTokenRouteLimits: TokenRouteLimits = { reads: 60, submissions: 20 };

/** Paths whose address is a secret: nothing on the way may keep them, pass them on or list them. */
export const tokenPaths = ["/v1/schedule/*", "/s/*", "/manage/*"] as const;

/** For an answer with a token in its path or in itself: nothing on the way keeps it, passes it on or lists it. */
export function keepToItself(context: Context): void {
  context.header("Cache-Control", "no-store");
  context.header("Referrer-Policy", "no-referrer");
  context.header("X-Robots-Tag", "noindex");
}

/** Headers and rate limits of every page and answer below {@link tokenPaths}, also of those that fail. */
export function tokenRouteRules(deps: {
  readonly limits: TokenRouteLimits;
  readonly address: ClientAddress;
  readonly now: () => Date;
}): MiddlewareHandler {
  const reads = rateLimiter(deps.limits.reads, deps.now);
  const submissions = rateLimiter(deps.limits.submissions, deps.now);
  return async (context, next) => {
    keepToItself(context);
    const isRead = context.req.method === "GET" || context.req.method === "HEAD";
    const wait = (isRead ? reads : submissions).take(deps.address(context));
    if (wait !== undefined) {
      context.header("Retry-After", String(wait));
      throw new ProblemError("too_many_requests", `Too many requests; try again in ${wait} seconds.`);
    }
    await next();
  };
}
