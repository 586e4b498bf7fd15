import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startReceiver } from "hookwell/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clockFinding } from "../../src/cli/doctor/database-checks.ts";
import { freshPostgres } from "../support/databases.ts";
import { beside } from "./beside.ts";
import { run } from "./in-process.ts";

const config = fileURLToPath(new URL("./fixtures/hookwell.config.ts", import.meta.url));
let directory: string;
let environment: Record<string, string>;
let path: string;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "hookwell-doctor-"));
  environment = { HOOKWELL_DATA_DIR: directory };
  path = join(directory, "hookwell.db");
  expect((await hookwell("migrate")).code).toBe(0);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const hookwell = (line: string, more: Record<string, string> = {}) =>
  run(line.split(" "), { ...environment, ...more });

/** What the doctor found, as JSON, without what is well. */
async function trouble(line = "", more: Record<string, string> = {}) {
  const { code, stdout } = await hookwell(`doctor --json ${line}`.trim(), more);
  const report = JSON.parse(stdout);
  expect(code).toBe(report.ok ? 0 : 1);
  type Check = { check: string; level: string; message: string; advice: string | null };
  return (report.checks as Check[]).filter(({ level }) => level !== "ok");
}

const problems = (found: Awaited<ReturnType<typeof trouble>>) =>
  found.filter(({ level }) => level === "problem").map(({ check }) => check);

describe("hookwell doctor on SQLite", () => {
  test("a new database is well: exit 0, and nothing was changed or made", async () => {
    chmodSync(path, 0o600);
    const before = readFileSync(path);
    const { code, stdout, stderr } = await hookwell("doctor");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "All is well.\n" });
    expect(stdout).toMatch(/^ok +database +SQLite/m);
    expect(stdout).toMatch(/^note +keys +There is no encryption key yet/m);
    expect(readFileSync(path)).toEqual(before);
    expect(() => statSync(`${path}.key`)).toThrow("ENOENT");
  });

  test("no database: one problem with its mend, whatever else cannot be looked at", async () => {
    const found = await trouble("", { HOOKWELL_DATA_DIR: join(directory, "nowhere") });
    expect(problems(found)).toEqual(["schema"]);
    expect(found[0]!.message).toContain("hookwell migrate");
    expect(found[0]!.advice).toContain("HOOKWELL_DATA_DIR");
  });

  test("a key file that others can read, and a key that opens nothing", async () => {
    await hookwell("subscriptions create --project live --url https://a.invalid/ --json");
    chmodSync(`${path}.key`, 0o644);
    expect(problems(await trouble("--no-egress"))).toEqual(["key file"]);
    chmodSync(`${path}.key`, 0o600);
    const HOOKWELL_ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 9).toString("base64")}`;
    const found = await trouble("--no-egress", { HOOKWELL_ENCRYPTION_KEYS });
    expect(problems(found)).toEqual(["keys"]);
    expect(JSON.stringify(found)).not.toContain(HOOKWELL_ENCRYPTION_KEYS.slice(3));
  });

  test("events that nobody here takes are told by type, and who takes them; parked ones with their error", async () => {
    await using hooks = beside(path, { type: "order.paid" });
    await hooks.emitUnknown("order.paid", {}, { tx: "own", id: "o1" });
    expect(problems(await trouble())).toEqual([]);
    const late = { HOOKWELL_MAX_LAG: "1ms" };
    await expect.poll(async () => problems(await trouble("", late))).toEqual(["dispatch"]);
    const [found] = (await trouble("", late)).filter(({ level }) => level === "problem");
    expect(found).toMatchObject({ message: expect.stringContaining("order.paid") });
    expect(found!.advice).toContain("--config");

    await hooks.store.failDispatch({ projectId: "live", id: "o1" }, "no such template", null, null);
    const parked = await trouble();
    expect(problems(parked)).toEqual(["parked"]);
    expect(parked.find(({ check }) => check === "parked")).toMatchObject({
      message: expect.stringContaining("no such template"),
      advice: expect.stringContaining("hookwell events release"),
    });
  });

  test("a delivery that is due too long asks for a worker", async () => {
    await using receiver = await startReceiver();
    await hookwell(`subscriptions create --dev --project live --url ${receiver.url}`);
    await hookwell("emit a.b --project live --data {}");
    await using hooks = beside(path);
    await hooks.drain({ deadlineMs: 5_000, max: 0 });
    await expect
      .poll(async () => problems(await trouble("--dev", { HOOKWELL_MAX_LAG: "1ms" })))
      .toEqual(["due"]);
  });

  test("egress: the connection that a send would make, and no request; a disabled subscription is not tried", async () => {
    await using receiver = await startReceiver();
    expect(problems(await trouble(`--dev --url ${receiver.url}`))).toEqual([]);
    const blocked = await trouble(`--url ${receiver.url}?token=hunter2`);
    expect(problems(blocked)).toEqual(["egress"]);
    expect(JSON.stringify(blocked)).toContain("HOOKWELL_ALLOW_NETWORKS");
    expect(JSON.stringify(blocked)).not.toContain("hunter2");
    const refused = await trouble("--dev --url http://127.0.0.1:1/");
    expect(refused.at(-1)).toMatchObject({
      level: "problem",
      message: expect.stringContaining("connect_refused"),
    });

    await hookwell("subscriptions create --dev --project live --url http://127.0.0.1:1/a");
    expect(problems(await trouble("--dev"))).toEqual(["egress"]);
    await hookwell(`subscriptions create --dev --project live --url ${receiver.url}`);
    await hookwell("subscriptions create --dev --project live --url http://127.0.0.1:2/").then(({ stdout }) =>
      hookwell(`subscriptions disable ${/sub_\S+/.exec(stdout)![0]}`),
    );
    const { stdout } = await hookwell("doctor --dev");
    expect(stdout.match(/^(\S+) +egress/gm)).toHaveLength(2);
    expect(stdout).toContain(`${new URL(receiver.url).origin} can be connected to`);
    expect(receiver.requests).toHaveLength(0);
    expect(receiver.connections).toBeGreaterThan(0);
  });

  test("endpoints in trouble are named with what to do: an open circuit is a problem, a disabled one a note", async () => {
    await using receiver = await startReceiver({ respond: () => 500 });
    await using hooks = beside(path);
    const { id } = await hooks.subscriptions.create({ url: receiver.url });
    const { id: disabled } = await hooks.subscriptions.create({ url: "https://a.example/" });
    await hooks.subscriptions.disable(disabled);
    const found = await trouble("--no-egress");
    expect(problems(found)).toEqual([]);
    expect(found.find(({ check }) => check === "endpoints")!.message).toContain(`1 (${disabled} since `);
    await hooks.emitManyUnknown(
      Array.from({ length: 12 }, (_, n) => ({ type: "a.b", data: n })),
      { tx: "own" },
    );
    await hooks.drain({ deadlineMs: 10_000 });
    const open = (await trouble("--no-egress")).filter(({ level }) => level === "problem");
    expect(open).toMatchObject([
      {
        check: "endpoints",
        message: expect.stringContaining(id),
        advice: expect.stringContaining("subscriptions test"),
      },
    ]);
  });

  test("a hold is told of with what ends it, and is no problem", async () => {
    await hookwell("hold --type booking.* --reason maintenance");
    const found = await trouble();
    expect(problems(found)).toEqual([]);
    expect(found.find(({ check }) => check === "hold")).toMatchObject({
      message: expect.stringContaining("maintenance"),
      advice: "hookwell release --type 'booking.*'",
    });
  });

  test.each([
    ["doctor now", /too much/],
    ["doctor --url example.com", /--url must be/],
    ["doctor --url https://a.example/ --no-egress", /not both/],
  ])("%s: exit 2", async (line, reason) => {
    const { code, stderr } = await hookwell(line);
    expect(code).toBe(2);
    expect(stderr).toMatch(reason);
  });

  test("--config: the types of the application are known", async () => {
    process.env.TEST_DATABASE = join(directory, "app.db");
    const { code, stdout } = await hookwell(`doctor --config ${config}`);
    delete process.env.TEST_DATABASE;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok +database/m);
  });
});

test("a clock that is off is told with what depends on it, beyond what the connection can explain", () => {
  expect(clockFinding("postgres", 3_000, 2_000)).toMatchObject({ level: "ok" });
  expect(clockFinding("postgres", -10_000, 5)).toMatchObject({
    level: "note",
    message: expect.stringContaining("10 s behind"),
  });
  expect(clockFinding("postgres", 240_000, 5)).toMatchObject({
    level: "problem",
    message: expect.stringContaining("4 min ahead"),
    advice: expect.stringContaining("NTP"),
  });
});

test("hookwell doctor on PostgreSQL: server, clock, connections and keys", async () => {
  const database = await freshPostgres();
  try {
    const HOOKWELL_ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 1).toString("base64")}`;
    const onPostgres = { HOOKWELL_DATABASE_URL: database.url, HOOKWELL_ENCRYPTION_KEYS };
    expect(problems(await trouble("", onPostgres))).toEqual(["schema"]);
    expect((await hookwell("migrate", onPostgres)).code).toBe(0);
    const { stdout } = await hookwell("doctor", onPostgres);
    expect(stdout).toMatch(/^ok +clock +The clocks .* agree\./m);
    expect(stdout).toMatch(/^ok +connections +\d+ of \d+ connections are used\./m);
    expect(stdout).toMatch(/^ok +keys/m);
    expect(stdout).not.toMatch(/pooler/);
    expect(problems(await trouble("", { HOOKWELL_DATABASE_URL: database.url }))).toContain("keys");
    const away = { HOOKWELL_DATABASE_URL: "postgres://app:hunter2@127.0.0.1:1/app" };
    const found = await trouble("", away);
    expect(problems(found)).toEqual(["database"]);
    expect(JSON.stringify(found)).not.toContain("hunter2");
  } finally {
    await database.drop();
  }
});
