import { type Context, Hono } from "hono";
import type { AppDatabase } from "../database/schema.ts";
import type { ProblemError } from "../http/problem.ts";
import { bookingPage } from "./booking-page.ts";
import { readBookingView } from "./booking-view.ts";
import { invitationPage } from "./invitation-page.ts";
import { readInvitationView } from "./invitation-view.ts";
import { type Message, messagePage, messages } from "./message-page.ts";
import { findAsset } from "./page-assets.ts";
import { type Html, pageHeaders } from "./page-layout.ts";

export interface PageDeps {
  readonly db: AppDatabase;
  readonly now: () => Date;
}

/** The pages of customers, `/s/{token}` and `/manage/{token}`, and the files that belong to them. */
export function pageRoutes({ db, now }: PageDeps): Hono {
  const routes = new Hono();

  routes.get("/s/:token", async (context) => {
    const view = await readInvitationView(db, context.req.param("token"), now());
    return view.state === "open" ? show(context, invitationPage(view)) : say(context, messages[view.state]);
  });

  routes.get("/manage/:token", async (context) => {
    const view = await readBookingView(db, context.req.param("token"), now());
    if (view === undefined) return say(context, messages.unknownBooking);
    return show(context, bookingPage(view, { wasMoved: context.req.query("done") === "moved" }));
  });

  routes.get("/pages/:version/:name", (context) => {
    const asset = findAsset(context.req.param("version"), context.req.param("name"));
    if (asset === undefined) return context.notFound();
    return context.body(asset.body, 200, {
      "Content-Type": asset.type,
      "X-Content-Type-Options": "nosniff",
      // Under an old address it is not what that address stood for.
      "Cache-Control": asset.isCurrent ? "public, max-age=31536000, immutable" : "no-store",
    });
  });

  return routes;
}

/** The page in place of a problem document, for what a browser asks for as a page; else undefined. */
export function problemPage(
  context: Context,
  problem: ProblemError,
): Response | Promise<Response> | undefined {
  if (!/^\/(?:s|manage)\/[^/]*$/.test(context.req.path) || !["GET", "HEAD"].includes(context.req.method))
    return undefined;
  if (problem.status === 429) return say(context, messages.tooMany);
  return say(context, problem.status === 503 ? messages.busy : messages.broken);
}

function say(context: Context, message: Message): Response | Promise<Response> {
  return show(context, messagePage(message), message.status);
}

function show(context: Context, page: Html, status: 200 | Message["status"] = 200) {
  return context.html(page, status, pageHeaders);
}
