import { randomBytes } from "node:crypto";
import { Hono } from "hono";
import { bodyLimit } from "../http/body-limit.ts";
import type { ReceivedWebhooks } from "./received-webhooks.ts";
import { receiverList, receiverPage } from "./receiver-page.ts";
import type { ReceiverSecrets } from "./receiver-secrets.ts";
import { receivers } from "./receivers.ts";

const shown = 100;
// A body of Hookwell has at most 256 KiB.
const maxBodyBytes = 512 * 1024;

/** The page, the list in it that it fetches again, and the addresses that webhooks are posted to. */
export function receiverRoutes(webhooks: ReceivedWebhooks, secrets: ReceiverSecrets): Hono {
  const routes = new Hono();

  routes.get("/", async (context) => {
    const nonce = randomBytes(16).toString("base64");
    context.header(
      "Content-Security-Policy",
      `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    context.header("X-Content-Type-Options", "nosniff");
    context.header("Cache-Control", "no-store");
    return context.html(receiverPage(await webhooks.list(shown), nonce));
  });

  routes.get("/list", async (context) => {
    context.header("Cache-Control", "no-store");
    context.header("Content-Security-Policy", "default-src 'none'");
    context.header("X-Content-Type-Options", "nosniff");
    return context.html(receiverList(await webhooks.list(shown)));
  });

  const limit = bodyLimit({
    maxSize: maxBodyBytes,
    onError: (context) => context.text("Too large for a webhook.", 413, { connection: "close" }),
  });
  routes.post("/hooks/:name", limit, async (context) => {
    const name = context.req.param("name");
    const secret = receivers.some((receiver) => receiver.name === name) ? secrets.get(name) : undefined;
    if (secret === undefined) return context.text("No such receiver.", 404);
    const body = new Uint8Array(await context.req.arrayBuffer());
    const row = await webhooks.record(name, secret, context.req.raw.headers, body);
    const verified = row.signature_fault === "" && row.body_signature_fault === "";
    return verified ? context.body(null, 204) : context.text("The signatures do not verify.", 401);
  });

  return routes;
}
