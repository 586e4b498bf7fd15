import { type Context, Hono } from "hono";
import type { Logger } from "hookwell";
import { availabilityRoutes } from "./availability/availability-routes.ts";
import { bookingRoutes } from "./bookings/booking-routes.ts";
import { bookRoutes, manageRoutes } from "./bookings/customer-routes.ts";
import type { BookingDeps } from "./bookings/deps.ts";
import { eventTypeRoutes } from "./event-types/event-type-routes.ts";
import type { AppHooks } from "./hooks.ts";
import { bodyLimit } from "./http/body-limit.ts";
import type { ClientAddress } from "./http/client-address.ts";
import type { AppEnvironment } from "./http/environment.ts";
import { ProblemError, problemDocument } from "./http/problem.ts";
import { redact } from "./http/redact.ts";
import { hasControlCharacter } from "./http/text.ts";
import { type TokenRouteLimits, tokenPaths, tokenRouteRules } from "./http/token-routes.ts";
import { type InvitationRouteDeps, invitationRoutes } from "./invitations/invitation-routes.ts";
import { scheduleRoutes } from "./invitations/schedule-routes.ts";
import type { ApiKeyCalls } from "./keys/api-keys.ts";
import { pageRoutes, problemPage } from "./pages/page-routes.ts";
import { ScimPatchError } from "./users/scim-patch.ts";
import { scimError, scimRoutes } from "./users/scim-routes.ts";
import type { UserChangeCalls } from "./users/user-changes.ts";
import { userRoutes } from "./users/user-routes.ts";
import { webhookRoutes } from "./webhooks/webhook-routes.ts";

const maxBodyBytes = 1024 * 1024;

export interface AppDeps extends InvitationRouteDeps, Omit<BookingDeps, "hooks"> {
  readonly hooks: AppHooks;
  readonly keys: ApiKeyCalls;
  readonly changes: UserChangeCalls;
  /** Who is at the other end, for the rate limits of the customers' routes. */
  readonly address: ClientAddress;
  readonly tokenRouteLimits: TokenRouteLimits;
  readonly logger: Logger;
}

/**
 * The application's own API: `/v1/…` and `/scim/v2/…` with the keys of its users; without one `/healthz`, and what
 * customers do with the token of an invitation or a booking.
 */
export function appointmentsApp(deps: AppDeps): Hono<AppEnvironment> {
  const app = new Hono<AppEnvironment>();

  app.use(async (context, next) => {
    const requestId = `req_${deps.newId()}`;
    context.set("requestId", requestId);
    context.header("X-Request-Id", requestId);
    await logRequest(deps.logger, context, requestId, next);
  });
  app.get("/healthz", (context) => context.json({ status: "ok" }));

  const customers = tokenRouteRules({ ...deps, limits: deps.tokenRouteLimits });
  for (const path of tokenPaths) app.use(path, customers);
  for (const path of ["/v1/*", "/scim/*", "/manage/*"])
    app.use(
      path,
      bodyLimit({
        maxSize: maxBodyBytes,
        onError: () => {
          throw new ProblemError("payload_too_large", `A request body may have ${maxBodyBytes} bytes.`);
        },
      }),
    );

  // Before the routes that need a key: the token in the path is what opens these.
  app.route("/v1/schedule", scheduleRoutes(deps));
  app.route("/v1/schedule", bookRoutes(deps));
  app.all("/v1/schedule/*", (context) => context.notFound());
  app.route("/manage", manageRoutes(deps));
  app.route("/", pageRoutes(deps));

  for (const path of ["/v1/*", "/scim/*"])
    app.use(path, async (context, next) => {
      context.set("caller", await authenticate(deps.keys, context.req.header("authorization")));
      // No id has any, and PostgreSQL cannot even compare with NUL.
      if (hasControlCharacter(context.req.path)) throw nothingThere(context);
      await next();
    });
  app.route("/v1/users", userRoutes(deps));
  app.route("/v1/users", availabilityRoutes(deps));
  app.route("/v1/event-types", eventTypeRoutes(deps));
  app.route("/v1/scheduling-invitations", invitationRoutes(deps));
  app.route("/v1/bookings", bookingRoutes(deps));
  app.route("/v1/webhooks", webhookRoutes(deps.hooks));
  app.route("/scim/v2", scimRoutes(deps.changes));

  app.notFound((context) => problem(context, nothingThere(context)));
  app.onError((error, context) => {
    const known = error instanceof ProblemError || error instanceof ScimPatchError ? error : undefined;
    if (known === undefined || known.cause !== undefined)
      deps.logger.error(
        redact(`${context.get("requestId")} ${context.req.method} ${context.req.path}: ${causes(error)}`),
      );
    const answer =
      known ?? new ProblemError("internal", "The request failed; nothing was changed. Try again later.");
    if (context.req.path.startsWith("/scim/")) return scimError(context, answer);
    const refusal = answer instanceof ProblemError ? answer : new ProblemError("internal", answer.message);
    return problemPage(context, refusal) ?? problem(context, refusal);
  });
  return app;
}

function nothingThere({ req }: Context): ProblemError {
  return new ProblemError("not_found", `There is nothing at ${req.method} ${redact(req.path)}.`);
}

/** Its own routes; the receiver page and Hookwell's own are not its business. */
/** A line for the request; in a log of records its id is in all lines that are written meanwhile. */
async function logRequest(
  { info, structured }: Logger,
  context: Context<AppEnvironment>,
  requestId: string,
  next: () => Promise<void>,
): Promise<void> {
  const began = performance.now();
  const answer = async (): Promise<void> => {
    await next();
    const { method, path } = context.req;
    const { status } = context.res;
    if (!isLogged(path)) return;
    const duration_ms = Math.round(performance.now() - began);
    if (structured)
      structured.entry({
        level: "info",
        event: "request",
        fields: { method, path: redact(path), status, duration_ms },
      });
    else info(redact(`${requestId} ${method} ${path} ${status}`));
  };
  await (structured ? structured.within({ request_id: requestId }, answer) : answer());
}

function isLogged(path: string): boolean {
  return /^\/(v1|scim|s|manage)\//.test(path);
}

/** @throws ProblemError 401 */
async function authenticate(keys: ApiKeyCalls, header: string | undefined) {
  const key = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(header ?? "")?.[1];
  const caller = key === undefined ? undefined : await keys.authenticate(key);
  if (caller === undefined)
    throw new ProblemError(
      "unauthenticated",
      "Send Authorization: Bearer <key> with the key of an active user.",
    );
  return caller;
}

function problem(context: Context<AppEnvironment>, error: ProblemError): Response {
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (error.status === 401) headers["www-authenticate"] = "Bearer";
  if (error.status === 503) headers["retry-after"] = "1";
  // The rest of the body is not read, so the connection cannot carry another request.
  if (error.status === 413) headers.connection = "close";
  const body = JSON.stringify(problemDocument(error, context.get("requestId")));
  return context.newResponse(body, { status: error.status, headers });
}

/** Messages of an error and what caused it: no stack, and none of the caller's data beyond what they quote. */
function causes(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 5; at = at.cause)
    parts.push(at.message);
  return parts.join(" <- ").replaceAll(/\s+/g, " ");
}
