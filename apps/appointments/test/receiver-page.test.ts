import { createHmac } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { chromium } from "playwright-core";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld("sqlite", { worker: true, keepReceiver: true });
});
afterEach(() => world[Symbol.asyncDispose]());

const secretsPath = () => join(world.directory, "receiver-secrets.json");
const secretOf = (name: string): string => JSON.parse(readFileSync(secretsPath(), "utf8"))[name];
const page = async (): Promise<string> => (await fetch(`${world.url}/receiver`)).text();

/** Signs as Hookwell does, by an independent few lines. */
function signed(body: string, secret: string, id: string): Record<string, string> {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const timestamp = String(Math.floor(world.hooks.clock().getTime() / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
    "x-hookwell-event": "user.updated",
    "x-hookwell-delivery": "dlv_x",
    "x-hookwell-attempt": "1",
    "x-hookwell-signature": `sha256=${createHmac("sha256", key).update(body).digest("hex")}`,
  };
}

const post = (name: string, body: string, headers: Record<string, string>) =>
  fetch(`${world.url}/receiver/hooks/${name}`, { method: "POST", body, headers });

const count = (text: string, part: string): number => text.split(part).length - 1;

/** Looks again after every webhook of a user event that came, until `holds`. */
async function pageWhen(holds: (text: string) => boolean): Promise<string> {
  for (;;) {
    const text = await page();
    if (holds(text)) return text;
    await setTimeout(5);
  }
}

test("the first run makes two subscriptions: one without an owner for users, one of the first admin for bookings", async () => {
  const { items } = await world.hooks.subscriptions.list({ projectId: "live" });
  const admin = (await world.admin.get("/v1/users/me")).body.id;
  const found = items.map(({ ownerId, eventTypes, url }) => ({
    ownerId,
    eventTypes,
    path: new URL(url).pathname,
  }));
  expect(found).toContainEqual({ ownerId: undefined, eventTypes: ["user.*"], path: "/receiver/hooks/users" });
  expect(found).toContainEqual({
    ownerId: admin,
    eventTypes: ["booking.*", "scheduling_invitation.*"],
    path: "/receiver/hooks/bookings",
  });
  expect(found).toHaveLength(2);
  expect(statSync(secretsPath()).mode & 0o777).toBe(0o600);
});

test("a webhook of a change is shown with both signatures verified, the first admin's own event is not sent", async () => {
  expect(await page()).toContain("Nothing yet");
  const user = await world.user();
  const text = await pageWhen((now) => now.includes("<article"));
  expect(count(text, "<article")).toBe(1);
  expect(text).toContain("Standard Webhooks signature verified");
  expect(text).toContain("Body signature verified");
  expect(text).toContain("First time");
  expect(text).toContain(user.email);
  expect(text).not.toContain("NOT verified");
});

test("the same webhook again is shown as a repeat; a forged one makes nothing look like a repeat", async () => {
  const secret = secretOf("users");
  const body = '{"hello":"there"}';
  const forged = await post(
    "users",
    body,
    signed(body, `whsec_${Buffer.alloc(32).toString("base64")}`, "evt_real"),
  );
  expect(forged.status).toBe(401);
  expect((await post("users", body, signed(body, secret, "evt_real"))).status).toBe(204);
  expect(count(await page(), ">Repeat<")).toBe(0);
  expect((await post("users", body, signed(body, secret, "evt_real"))).status).toBe(204);
  const text = await page();
  expect(count(text, ">Repeat<")).toBe(1);
  expect(count(text, "Standard Webhooks signature NOT verified")).toBe(1);
  // The same id at another receiver is another receiver's first.
  expect((await post("bookings", body, signed(body, secretOf("bookings"), "evt_real"))).status).toBe(204);
  expect(count(await page(), ">Repeat<")).toBe(1);
});

test("each signature is judged by itself", async () => {
  const secret = secretOf("users");
  const good = signed("{}", secret, "evt_1");
  expect((await post("users", "{}", { ...good, "webhook-timestamp": "1" })).status).toBe(401);
  expect((await post("users", "{}", { ...good, "x-hookwell-signature": "sha256=00" })).status).toBe(401);
  const text = await page();
  expect(count(text, "Standard Webhooks signature NOT verified")).toBe(1);
  expect(count(text, "Body signature NOT verified")).toBe(1);
  // Why is readable without a mouse.
  expect(text).toMatch(/<p class="why">The webhook was signed \d+ seconds ago/);
  expect(count(text, "Standard Webhooks signature verified")).toBe(1);
  expect((await post("nobody", "{}", good)).status).toBe(404);
  expect((await post("users", "x".repeat(600_000), good)).status).toBe(413);
});

test("received text is escaped wherever it comes from, and nothing is loaded from elsewhere", async () => {
  const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`;
  const headers = signed(evil, secretOf("users"), "evt_2");
  for (const name of ["x-hookwell-event", "x-hookwell-delivery", "x-hookwell-attempt", "webhook-id"])
    headers[name] = evil;
  await post("users", evil, headers);
  const response = await fetch(`${world.url}/receiver`);
  const text = await response.text();
  expect(text).toContain("&lt;script&gt;");
  expect(count(text, "<script")).toBe(1);
  expect(text).not.toContain("<img");
  expect(text.replaceAll(/"[^"]*"/g, '""')).not.toMatch(/<[^<>]* (?:src|href)=/);
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await (await fetch(`${world.url}/receiver/list`)).text()).not.toContain("<script>");
});

test("a body with NUL and broken UTF-8 is kept and shown as far as it can be", async () => {
  const bytes = Buffer.from([0x61, 0x00, 0xff, 0x62]);
  const headers = signed("irrelevant", secretOf("users"), "evt_3");
  const response = await fetch(`${world.url}/receiver/hooks/users`, { method: "POST", body: bytes, headers });
  expect(response.status).toBe(401);
  expect(await page()).toContain("a\ufffd\ufffdb");
});

describe("in a browser", () => {
  const path = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
  const found = existsSync(path);
  if (!found && process.env.CI) throw new Error(`No browser at ${path}: CI must have one (CHROMIUM_PATH).`);
  if (!found)
    console.warn(`SKIPPED: the receiver page was not tried in a browser, there is none at ${path}.`);
  const browser = found ? chromium.launch({ executablePath: path, args: ["--no-sandbox"] }) : undefined;
  afterAll(async () => (await browser)?.close());

  test.skipIf(!found)(
    "the page shows new webhooks by itself, on a phone, and keeps an opened body open",
    async () => {
      const context = await (await browser!).newContext({ viewport: { width: 360, height: 640 } });
      const view = await context.newPage();
      const faults: string[] = [];
      view.on("pageerror", (error) => faults.push(error.message));
      view.on("console", (message) => {
        if (message.type() === "error" && !message.text().includes("favicon")) faults.push(message.text());
      });
      view.on("dialog", (dialog) => {
        faults.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      await view.goto(`${world.url}/receiver`);
      await view.getByText("Nothing yet").waitFor();
      const name = `<img src=x onerror=alert(1)> ${"W".repeat(120)}`;
      const user = await world.user({ name });
      await view.getByText("Body signature verified").waitFor();
      await view.getByText("Body", { exact: true }).first().click();
      await view.getByText(user.email).waitFor();
      await user.patch("/v1/users/me", { name: "Second" });
      await view.locator("article").nth(1).waitFor();
      expect(await view.locator("article").count()).toBe(2);
      // The older one, now below, is still open and shows its text as text.
      expect(await view.locator("details[open]").count()).toBe(1);
      expect(await view.locator("details[open] pre").textContent()).toContain("<img src=x");
      expect(await view.locator("img").count()).toBe(0);
      const width = await view.evaluate("document.documentElement.scrollWidth");
      expect(width).toBeLessThanOrEqual(360);
      expect(faults).toEqual([]);
      await context.close();
    },
  );
});
