import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { verify } from "hookwell";
import { startReceiver } from "hookwell/testing";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCli } from "../../src/cli/run-cli.ts";
import { freshPostgres } from "../support/databases.ts";
import { readPrometheus } from "../support/prometheus.ts";
import { run } from "./in-process.ts";
import { Cli, type Finished, run as spawnAndWait } from "./processes.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const config = fileURLToPath(new URL("./fixtures/hookwell.config.ts", import.meta.url));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hookwell-serve-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
const sqlite = (more: Record<string, string> = {}) => ({
  PORT: "0",
  HOOKWELL_DATA_DIR: join(directory, "data"),
  ...more,
});

async function api(url: string, key: string, method: string, path: string, body?: unknown) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  return { status: response.status, json: text === "" ? undefined : JSON.parse(text) };
}

/** Subscribes a receiver, emits one event, and answers the webhook that came, verified. */
async function sendOne(url: string, key: string, type = "order.paid") {
  await using receiver = await startReceiver();
  const made = await api(url, key, "POST", "/v1/subscriptions", { project_id: "live", url: receiver.url });
  expect(made.status).toBe(201);
  const emitted = await api(url, key, "POST", "/v1/events", { project_id: "live", type, data: { n: 1 } });
  expect(emitted.status).toBe(202);
  const [request] = await receiver.waitForRequests(1);
  return verify(request!.headers, request!.body, made.json.secret);
}

async function endConnections(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
  );
  await client.end();
}

describe("hookwell serve", () => {
  test("on SQLite from nothing: a key printed once, a verified webhook, SIGTERM and SIGINT end it with 0, and a second start keeps all", async () => {
    let first: Finished;
    let key: string;
    {
      await using cli = new Cli(["serve", "--dev"], { environment: sqlite() });
      const url = await cli.url();
      key = (await cli.waitFor(/shown this once: (hwk_\S+)/))[1]!;
      await cli.waitFor(/Development mode/);
      expect((await sendOne(url, key)).payload).toMatchObject({ type: "order.paid", data: { n: 1 } });
      first = await cli.stop("SIGTERM");
    }
    expect(first.code).toBe(0);
    expect(first.stderr).not.toContain("Error");
    expect(statSync(join(directory, "data", "hookwell.db.key")).mode & 0o777).toBe(0o600);
    await using cli = new Cli(["serve", "--dev"], { environment: sqlite() });
    const url = await cli.url();
    await cli.waitFor(/listens on/);
    expect(cli.stdout).not.toContain("hwk_");
    expect((await api(url, key, "GET", "/v1/deliveries?status=delivered")).json.items).toHaveLength(1);
    expect((await cli.stop("SIGINT")).code).toBe(0);
  });

  test("without --dev loopback and http are refused, and HOOKWELL_ALLOW_NETWORKS opens what it names", async () => {
    const key = "an-admin-key-given-by-hand";
    const serving = (environment: Record<string, string>) =>
      new Cli(["serve"], { environment: sqlite({ HOOKWELL_API_KEY: key, ...environment }) });
    const subscribe = async (cli: Cli, url: string) =>
      api(await cli.url(), key, "POST", "/v1/subscriptions", { project_id: "live", url });
    await using closed = serving({});
    expect(await subscribe(closed, "https://127.0.0.1/hook")).toMatchObject({
      status: 400,
      json: { code: "blocked_address" },
    });
    await using open = serving({ HOOKWELL_ALLOW_NETWORKS: "127.0.0.0/8" });
    expect(await subscribe(open, "https://127.0.0.1/hook")).toMatchObject({ status: 201 });
    expect(await subscribe(open, "https://10.0.0.1/hook")).toMatchObject({ status: 400 });
  });

  test("HOOKWELL_API_KEY is the admin key, is not printed, and may be given again", async () => {
    const key = "an-admin-key-given-by-hand";
    for (let n = 0; n < 2; n++) {
      await using cli = new Cli(["serve"], { environment: sqlite({ HOOKWELL_API_KEY: key }) });
      const url = await cli.url();
      expect((await api(url, key, "GET", "/v1/keys")).json.items).toMatchObject([{ scopes: ["admin"] }]);
      expect((await api(url, "another-key-of-that-length", "GET", "/v1/keys")).status).toBe(401);
      const { stdout, stderr } = await cli.stop();
      expect(stdout + stderr).not.toContain(key);
      expect(stdout + stderr).not.toContain("hwk_");
    }
  });

  test("HOOKWELL_WORKER=off captures, and hookwell worker beside it delivers; its health routes answer", async () => {
    const key = "an-admin-key-given-by-hand";
    await using receiver = await startReceiver();
    await using server = new Cli(["serve", "--dev"], {
      environment: sqlite({ HOOKWELL_API_KEY: key, HOOKWELL_WORKER: "off" }),
    });
    const url = await server.url();
    await server.waitFor(/HOOKWELL_WORKER=off/);
    await api(url, key, "POST", "/v1/subscriptions", { project_id: "live", url: receiver.url });
    const { json } = await api(url, key, "POST", "/v1/events", { project_id: "live", type: "a.b", data: 1 });
    expect((await api(url, key, "GET", `/v1/events/${json.id}`)).json).toMatchObject({ state: "new" });
    expect(receiver.requests).toHaveLength(0);
    await using worker = new Cli(["worker", "--dev", "--port", "0"], { environment: sqlite() });
    const health = await worker.url();
    const [request] = await receiver.waitForRequests(1);
    expect(request!.headers["webhook-id"]).toBe(json.id);
    for (const path of ["/healthz", "/readyz", "/healthz/delivery"])
      expect((await fetch(health + path)).status).toBe(200);
    expect((await fetch(`${health}/v1/events`)).status).toBe(404);
    expect((await worker.stop()).code).toBe(0);
    expect((await server.stop()).code).toBe(0);
  });

  test("field-faults G6: HOOKWELL_LOG=json gives lines with the ids of request, event and delivery, and no secret in any", async () => {
    const key = "an-admin-key-given-by-hand";
    const password = "value-of-a-header-that-nobody-may-see";
    // A receiver that says back what it was sent.
    await using receiver = await startReceiver({
      respond: ({ headers, body }) => ({ status: 500, body: `${JSON.stringify(headers)} ${body}` }),
    });
    const environment = sqlite({
      HOOKWELL_API_KEY: key,
      HOOKWELL_LOG: "json",
      HOOKWELL_LOG_LEVEL: "debug",
      HOOKWELL_RETRY_SCHEDULE: "1ms",
    });
    await using server = new Cli(["serve", "--dev"], {
      environment: { ...environment, HOOKWELL_WORKER: "off" },
    });
    const url = await server.url();
    const made = await api(url, key, "POST", "/v1/subscriptions", {
      project_id: "live",
      url: receiver.url,
      headers: { "x-password": password },
    });
    const second = await api(url, key, "POST", "/v1/keys", { name: "k", scopes: ["read"] });
    await api(url, second.json.key, "GET", `/v1/subscriptions/${second.json.key}?limit=${made.json.secret}`);
    const { json } = await api(url, key, "POST", "/v1/events", { project_id: "live", type: "a.b", data: 1 });
    await using worker = new Cli(["worker", "--dev", "--port", "0"], { environment });
    await worker.waitFor(/"event":"failed"/);
    const health = await worker.url();
    expect((await fetch(`${health}/metrics`)).status).toBe(401);
    const page = await fetch(`${health}/metrics`, {
      headers: { authorization: `Bearer ${second.json.key}` },
    });
    const metrics = readPrometheus(await page.text());
    expect(metrics.get("hookwell_deliveries_failed_total")?.samples).toMatchObject([{ value: 1 }]);
    expect(metrics.get("hookwell_pending_deliveries")?.samples).toMatchObject([{ value: 0 }]);
    const ends = [await worker.stop(), await server.stop()];
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    const lines = ends
      .flatMap(({ stdout, stderr }) => `${stdout}${stderr}`.split("\n"))
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    for (const line of lines)
      expect(line).toMatchObject({ time: expect.stringMatching(/Z$/), level: expect.any(String) });
    const captured = lines.find((line) => line.event === "captured");
    const request = lines.find((line) => line.event === "request" && line.path === "/v1/events");
    expect(request).toMatchObject({ method: "POST", status: 202, level: "info" });
    expect(captured).toMatchObject({ event_id: json.id, type: "a.b", request_id: request.request_id });
    const delivery_id = expect.stringMatching(/^dlv_/);
    const subject = { event_id: json.id, delivery_id, subscription_id: made.json.id };
    expect(lines.find((line) => line.event === "dispatched")).toMatchObject({
      event_id: json.id,
      deliveries: 1,
    });
    expect(lines.filter((line) => line.event === "attempted")).toMatchObject([
      { ...subject, attempt: 1, status_code: 500, error_code: "http_500", level: "debug" },
      { ...subject, attempt: 2 },
    ]);
    expect(lines.find((line) => line.event === "failed")).toMatchObject({ ...subject, level: "warn" });
    const everything = JSON.stringify(lines);
    for (const secret of [key, password, second.json.key, made.json.secret])
      expect(everything).not.toContain(secret.replace(/^(whsec_|hwk_)/, ""));
    expect(receiver.requests[0]!.headers["x-password"]).toBe(password);
  });

  test("a stop lets a send finish and gives nothing up; further signals end it at once with 1", async () => {
    await using receiver = await startReceiver({ respond: () => "hang" });
    const key = "an-admin-key-given-by-hand";
    await using cli = new Cli(["serve", "--dev"], { environment: sqlite({ HOOKWELL_API_KEY: key }) });
    const url = await cli.url();
    await api(url, key, "POST", "/v1/subscriptions", { project_id: "live", url: receiver.url });
    await api(url, key, "POST", "/v1/events", { project_id: "live", type: "a.b", data: 1 });
    await receiver.waitForRequests(1);
    cli.signal("SIGTERM");
    await cli.waitFor(/SIGTERM: finishing/);
    // A repeat within half a second is the same key press that npm passes on.
    const again = setInterval(() => cli.signal("SIGTERM"), 100);
    const { code, stderr } = await cli.finished.finally(() => clearInterval(again));
    expect(code).toBe(1);
    expect(stderr).toContain("stopping at once");
  });

  test("--config serves the application's own types and database", async () => {
    const key = "an-admin-key-given-by-hand";
    await using receiver = await startReceiver();
    await using cli = new Cli(["serve", "--config", config], {
      environment: { PORT: "0", HOOKWELL_API_KEY: key, TEST_DATABASE: join(directory, "app.db") },
    });
    const url = await cli.url();
    expect((await api(url, key, "GET", "/v1/catalogue")).json.items).toMatchObject([{ type: "parcel.sent" }]);
    await api(url, key, "POST", "/v1/subscriptions", { url: receiver.url });
    expect((await api(url, key, "POST", "/v1/events", { type: "a.b", data: {} })).json.code).toBe(
      "unknown_event_type",
    );
    const { json } = await api(url, key, "POST", "/v1/events", { type: "parcel.sent", data: { id: "p1" } });
    const [request] = await receiver.waitForRequests(1);
    expect(JSON.parse(request!.body.toString())).toEqual({ id: json.id, parcel: { id: "p1" } });
    expect((await cli.stop()).code).toBe(0);
    expect(existsSync(join(directory, "data"))).toBe(false);
  });

  test.each([
    [{ PORT: "http" }, "PORT"],
    [{ HOOKWELL_WORKER: "no" }, "HOOKWELL_WORKER"],
    [{ HOOKWELL_RETRY_SCHEDULE: "5s,later" }, "HOOKWELL_RETRY_SCHEDULE"],
    [{ HOOKWELL_ALLOW_NETWORKS: "home" }, "HOOKWELL_ALLOW_NETWORKS"],
    [{ HOOKWELL_MAX_LAG: "never" }, "HOOKWELL_MAX_LAG"],
    [{ HOOKWELL_API_KEY: "short" }, "HOOKWELL_API_KEY"],
    [{ DATABASE_URL: "mysql://a@b/c" }, "DATABASE_URL"],
  ])("%j is refused at the start with the name of the variable: exit 2", async (environment, name) => {
    const notes: string[] = [];
    const note = (line: string): void => void notes.push(line);
    const code = await runCli(["serve"], { environment: sqlite(environment), print: note, note });
    expect(code).toBe(2);
    expect(notes.join("\n")).toContain(name);
    expect(notes.join("\n")).not.toMatch(/\n\s+at /);
    expect(existsSync(join(directory, "data"))).toBe(false);
  });

  test("a port in use is one sentence that says what to do: exit 1", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, resolve));
    const { port } = taken.address() as { port: number };
    const { code, stderr } = await spawnAndWait(["serve"], { environment: sqlite({ PORT: String(port) }) });
    await new Promise((resolve) => taken.close(resolve));
    expect(code).toBe(1);
    expect(stderr).toContain(`port ${port}: another program uses it`);
  });

  test("another encryption key than the one that sealed the database is refused before anything is sent: exit 1", async () => {
    const started = new Cli(["serve"], { environment: sqlite() });
    await started.url();
    await started.stop();
    const HOOKWELL_ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 9).toString("base64")}`;
    for (const args of [["serve"], ["worker", "--port", "0"]]) {
      const { code, stderr } = await run(args, sqlite({ HOOKWELL_ENCRYPTION_KEYS }));
      expect(code).toBe(1);
      expect(stderr).toContain("HOOKWELL_ENCRYPTION_KEYS");
      expect(stderr).not.toContain(HOOKWELL_ENCRYPTION_KEYS.slice(3));
    }
  });

  test("on PostgreSQL: names the command it needs, never migrates unasked, then works with two replicas", async () => {
    const database = await freshPostgres();
    try {
      const key = "an-admin-key-given-by-hand";
      const keyless = { PORT: "0", HOOKWELL_DATABASE_URL: database.url, HOOKWELL_API_KEY: key };
      const environment = {
        ...keyless,
        HOOKWELL_ENCRYPTION_KEYS: (await run(["keys", "generate"])).stdout.trim(),
      };
      for (const args of [["serve"], ["worker", "--port", "0"]]) {
        const unmigrated = await run(args, environment);
        expect(unmigrated.code).toBe(1);
        expect(unmigrated.stderr).toContain("hookwell migrate");
      }
      expect((await run(["migrate"], environment)).code).toBe(0);
      const unsealed = await run(["serve"], keyless);
      expect(unsealed.code).toBe(1);
      expect(unsealed.stderr).toContain("hookwell keys generate");
      await using one = new Cli(["serve", "--dev"], { environment });
      await using two = new Cli(["serve", "--dev"], { environment });
      const urls = [await one.url(), await two.url()];
      expect((await sendOne(urls[0]!, key)).payload).toMatchObject({ data: { n: 1 } });
      expect((await api(urls[1]!, key, "GET", "/v1/keys")).json.items).toHaveLength(1);
      expect((await api(urls[1]!, key, "GET", "/v1/events")).json.items).toHaveLength(1);
      // The server ends every connection of both, as at its restart: neither process ends, and both go on.
      await endConnections(database.url);
      for (const url of urls)
        await expect.poll(() => fetch(`${url}/readyz`).then(({ status }) => status)).toBe(200);
      expect((await sendOne(urls[1]!, key)).payload).toMatchObject({ data: { n: 1 } });
      expect([(await one.stop()).code, (await two.stop()).code]).toEqual([0, 0]);
    } finally {
      await database.drop();
    }
  });

  test("without @hookwell/server it names the install", async () => {
    // A copy of the package in a place where only its own dependency is installed.
    cpSync(join(root, "packages/hookwell/src"), join(directory, "src"), { recursive: true });
    cpSync(join(root, "packages/hookwell/package.json"), join(directory, "package.json"));
    mkdirSync(join(directory, "node_modules"));
    symlinkSync(join(root, "node_modules/undici"), join(directory, "node_modules/undici"));
    const { code, stderr } = await spawnAndWait(["serve"], {
      main: join(directory, "src/cli/main.ts"),
      environment: sqlite(),
    });
    expect(code).toBe(1);
    expect(stderr).toContain("npm install @hookwell/server");
  });
});
