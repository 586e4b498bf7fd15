import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { createHookwell, MemoryOutbox, memoryTx } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { expect, test, vi } from "vitest";
import { events, makeService } from "../../../../examples/publishing.ts";
import { makeReceiver } from "../../../../examples/receiver.ts";
import { check, subscribe } from "../../../../examples/subscribing.ts";
import { Cli } from "../cli/processes.ts";
import { freshPostgres, migrated } from "../support/databases.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const guides = readdirSync(join(root, "docs/guides")).map((name) => `docs/guides/${name}`);
const pages = ["README.md", "packages/hookwell/README.md", "packages/server/README.md", ...guides];
const sources = (directory: string): string[] =>
  readdirSync(join(root, directory), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => read(join(directory, name)));
/** The formatter lays a block of a page out by itself: less indented, so with other line breaks. */
const words = (text: string): string => text.replace(/\s+/g, "").replace(/,(?=[)\]}])/g, "");
const programs = [...sources("examples"), ...sources("apps/appointments/src")].map(words);

test.each(pages)(
  "every TypeScript block of %s stands, word for word, in examples/ or the reference application",
  (page) => {
    for (const [, block] of read(page).matchAll(/```ts\n([\s\S]*?)```/g))
      expect(
        programs.some((program) => program.includes(words(block!))),
        `this block of ${page}:\n${block}`,
      ).toBe(true);
  },
);

test("pages only link to files that exist", () => {
  const all = globSync(["*.md", "{docs,apps,packages}/**/*.md"], {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  });
  expect(all).toEqual(expect.arrayContaining(pages));
  for (const page of all)
    for (const [, target] of read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g))
      expect(existsSync(join(root, dirname(page), target!)), `${page} links to ${target}`).toBe(true);
});

const inMemory = () =>
  createHookwell({
    store: new MemoryOutbox(),
    tx: memoryTx(),
    project: "live",
    network: { allow: ["127.0.0.0/8"], http: true },
    events,
  });

test("quickstart.ts runs as it is pasted: the user and its event are there, and the event is dispatched", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hookwell-quickstart-"));
  try {
    await using program = new Cli([], { main: join(root, "examples/quickstart.ts"), cwd: directory });
    await vi.waitFor(
      () => {
        using db = new DatabaseSync(join(directory, "app.db"), { readOnly: true });
        expect(db.prepare("SELECT id FROM users").all()).toEqual([{ id: "u1" }]);
        expect(db.prepare("SELECT type, state FROM hookwell_event").all()).toEqual([
          { type: "user.created", state: "dispatched" },
        ]);
      },
      { timeout: 60_000 },
    );
    expect(program.stderr).toBe("");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("publishing.ts pays an invoice with its event, and what is paid already publishes nothing", async () => {
  const { url, drop } = await freshPostgres(migrated);
  const { pool, db, hooks, payInvoice } = makeService(url, `k1:${Buffer.alloc(32, 7).toString("base64")}`);
  try {
    await pool.query(
      "CREATE TABLE invoice (id text, customer_id text, total int, status text, revision int)",
    );
    await pool.query("INSERT INTO invoice VALUES ('in_1', 'c', 10, 'open', 1)");
    await hooks.ready();
    const emitted = await payInvoice("in_1", "acme");
    expect(emitted).toMatchObject({ duplicate: false });
    expect(await payInvoice("in_1", "acme")).toBeUndefined();
    const { items } = await hooks.events.list({});
    expect(items).toMatchObject([
      { id: emitted!.id, type: "invoice.paid", tenantId: "acme", subject: "invoice:in_1", revision: 2 },
    ]);
    expect(JSON.parse(items[0]!.data)).toEqual({ id: "in_1", customer_id: "c", total: 10, status: "paid" });
  } finally {
    await hooks.close();
    await db.destroy();
    await drop();
  }
});

test("receiver.ts takes a webhook once, however often it comes, and refuses another's signature", async () => {
  const hooks = inMemory();
  const secret = `whsec_${Buffer.alloc(32, 3).toString("base64")}`;
  const handled: string[] = [];
  const answered: number[] = [];
  const servers = [secret, `whsec_${Buffer.alloc(32, 4).toString("base64")}`].map((each) =>
    makeReceiver(each, async (id) => {
      handled.push(id);
    }).on("request", (_request, response) => response.on("finish", () => answered.push(response.statusCode))),
  );
  try {
    for (const server of servers) await once(server.listen(0, "127.0.0.1"), "listening");
    const [url, wrong] = servers.map(
      (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    );
    await hooks.subscriptions.create({ url: url!, secret });
    const data = { id: "in_1", customer_id: "c", total: 10, status: "open" } as const;
    const { id } = await hooks.emit("invoice.created", data, { tx: "own" });
    await hooks.drain({ deadlineMs: 30_000 });
    const { items } = await hooks.deliveries.list({});
    await hooks.deliveries.retry(items[0]!.id);
    await hooks.drain({ deadlineMs: 30_000 });
    expect([handled, answered]).toEqual([[id], [204, 204]]);

    await hooks.subscriptions.create({ url: wrong!, secret });
    await hooks.emit("invoice.created", { ...data, id: "in_2" }, { tx: "own" });
    await hooks.drain({ deadlineMs: 2_000 });
    expect(answered.sort()).toEqual([204, 204, 204, 401]);
    expect(handled).toHaveLength(2);
  } finally {
    await hooks.close();
    for (const server of servers) server.close();
  }
});

test("subscribing.ts subscribes, and verifies what comes with the secret it got", async () => {
  const receiver = await startReceiver();
  const hooks = inMemory();
  try {
    const secret = await subscribe(hooks);
    const { items } = await hooks.subscriptions.list({});
    expect(items).toMatchObject([{ url: "https://example.com/hooks", eventTypes: ["user.*"] }]);
    await hooks.subscriptions.update(items[0]!.id, { url: receiver.url, eventTypes: ["invoice.*"] });
    const data = { id: "in_1", customer_id: "c", total: 10, status: "open" } as const;
    const { id } = await hooks.emit("invoice.created", data, { tx: "own" });
    await hooks.drain({ deadlineMs: 30_000 });
    const [request] = await receiver.waitForRequests(1);
    expect(check(request!, request!.body, secret)).toMatchObject({ id, payload: { data } });
  } finally {
    await hooks.close();
    await receiver.close();
  }
});
