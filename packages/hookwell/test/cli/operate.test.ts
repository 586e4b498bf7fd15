import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Receiver, startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Terminal } from "../../src/cli/command.ts";
import { freshPostgres } from "../support/databases.ts";
import { beside, work } from "./beside.ts";
import { run } from "./in-process.ts";
import { run as runProcess } from "./processes.ts";
import { wrongLines } from "./wrong-lines.ts";

const config = fileURLToPath(new URL("./fixtures/hookwell.config.ts", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "hookwell-operate-"));
const environment = { HOOKWELL_DATA_DIR: join(directory, "data") };
const path = join(directory, "data", "hookwell.db");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const hookwell = (line: string, terminal?: Partial<Terminal>) => run(line.split(" "), environment, terminal);

/** What the command printed, as JSON; it must have ended well. */
async function json(line: string, ...more: string[]) {
  const { code, stdout, stderr } = await run([...line.split(" "), ...more, "--json"], environment);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("commands on a SQLite database", () => {
  let receiver: Receiver;
  let status = 500;
  beforeAll(async () => {
    receiver = await startReceiver({ respond: () => ({ status, body: "no \u202e\u001b[31mway" }) });
    expect((await hookwell("migrate")).code).toBe(0);
    const given = await run(
      ["subscriptions", "create", "--dev", "--project", "live", "--url", receiver.url, "--type", "user.*"],
      environment,
    );
    expect(given.code).toBe(0);
  });
  afterAll(() => receiver[Symbol.asyncDispose]());

  test("a database that is not there is not made: exit 1, and the mend is named", async () => {
    const nowhere = { HOOKWELL_DATA_DIR: join(directory, "nowhere") };
    for (const line of ["events", "emit a.b --project live --data 1", "keys create --name x --scope read"]) {
      const { code, stdout, stderr } = await run(line.split(" "), nowhere);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain("hookwell migrate");
    }
    expect(() => readFileSync(nowhere.HOOKWELL_DATA_DIR)).toThrow("ENOENT");
  });

  test("emit prints the id alone; once more with it changes nothing; integers keep their digits", async () => {
    const first = await hookwell('emit user.created --project live --id u1 --data {"n":9007199254740993}');
    expect(first).toEqual({ code: 0, stdout: "u1\n", stderr: "" });
    const again = await hookwell('emit user.created --project live --id u1 --data {"n":9007199254740993}');
    expect(again).toMatchObject({ code: 0, stdout: "u1\n" });
    expect(again.stderr).toContain("nothing was written");
    const other = await hookwell("emit user.created --project live --id u1 --data {}");
    expect(other).toMatchObject({ code: 1, stdout: "" });
    expect((await hookwell("events u1 --json")).stdout).toContain('"data":{"n":9007199254740993}');
  });

  test("emit takes data from a file and from standard input, and every fact of the event", async () => {
    const file = join(directory, "data.json");
    writeFileSync(file, '{"name":"Ada"}');
    const facts =
      "--tenant acme --subject user:2 --revision 3 --actor user:7 --audience o1 --audience o2 --at 2026-01-31T12:00:00+01:00";
    const { id } = await json(`emit user.created --project live --data-file ${file} ${facts}`);
    expect(await json(`events ${id}`)).toMatchObject({
      data: { name: "Ada" },
      tenant_id: "acme",
      subject: "user:2",
      revision: 3,
      actor: { type: "user", id: "7" },
      audience: ["o1", "o2"],
      occurred_at: "2026-01-31T11:00:00.000Z",
      deliveries: [],
    });
    const piped = await hookwell("emit other.thing --project live --id piped", {
      readInput: async () => '{"from":"a pipe"}\n',
    });
    expect(piped).toEqual({ code: 0, stdout: "piped\n", stderr: "" });
    expect((await json("events --id piped")).items).toMatchObject([{ data: { from: "a pipe" } }]);
  });

  test.each(wrongLines)(
    "%s: exit 2 with the reason, and nothing on standard output",
    async (line, reason) => {
      const { code, stdout, stderr } = await hookwell(line);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(reason);
      expect(stderr).not.toMatch(/\n\s+at /);
    },
  );

  test.each([
    "events nothing_1",
    "deliveries dlv_1",
    "subscriptions sub_1",
    "retry dlv_1",
    "keys delete key_1",
  ])("%s: what is not there is exit 1 with its id", async (line) => {
    const { code, stdout, stderr } = await hookwell(line);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(line.split(" ").at(-1));
  });

  test("deliveries shows what failed and why, and what a receiver says cannot steer the terminal", async () => {
    await work(path);
    const { items } = await json("deliveries --status failed --event u1");
    expect(items).toMatchObject([{ event_id: "u1", status: "failed", error_code: "http_500", attempts: 1 }]);
    const [{ id }] = items;
    expect(await json(`deliveries ${id}`)).toMatchObject({
      url: receiver.url,
      body: receiver.requests.find(({ headers }) => headers["webhook-id"] === "u1")!.body.toString(),
      attempt_log: [{ number: 1, status_code: 500 }],
    });
    const shown = await hookwell(`deliveries ${id}`, { columns: 200, colour: false });
    expect(shown.stdout).toMatch(/^status\s+failed \(attempts_exhausted\)$/m);
    expect(shown.stdout).toContain("no \\u202e");
    for (const steering of ["\u001b", "\u202e"]) expect(shown.stdout).not.toContain(steering);
    const list = await hookwell("deliveries --error-code http_500");
    expect(list.stdout).toContain(id);
    expect((await hookwell("deliveries --error-code timeout")).stderr).toBe("No delivery matches.\n");
    expect((await hookwell("events --outcome unmatched")).stdout).toContain("other.thing");
    expect((await json("events explain piped")).items).toMatchObject([{ matched: false, rule: "type" }]);
    expect((await hookwell("events explain u1")).stdout).toMatch(/yes +It was queued/);
    expect((await hookwell("events explain nothing_1")).code).toBe(1);
  });

  test("retry opens a new round with the same bytes; one refused id of several is exit 1 and the others are done", async () => {
    const [{ id }] = (await json("deliveries --event u1")).items;
    status = 204;
    const { code, stdout, stderr } = await hookwell(`retry ${id} dlv_nowhere --json`);
    expect(code).toBe(1);
    expect(stderr).toContain("dlv_nowhere");
    expect(JSON.parse(stdout)).toMatchObject({
      items: [{ id, status: "pending", attempts: 0 }],
      errors: [{ id: "dlv_nowhere", code: "not_found" }],
    });
    await work(path);
    expect(await json(`deliveries ${id}`)).toMatchObject({ status: "delivered" });
    const sent = receiver.requests.filter(({ headers }) => headers["webhook-id"] === "u1");
    expect(sent[1]!.body).toEqual(sent[0]!.body);
    expect((await hookwell(`cancel ${id}`)).code).toBe(1);
    expect((await hookwell(`retry ${id}`)).code).toBe(0);
    expect((await hookwell(`cancel ${id}`)).stdout).toContain("cancelled");
  });

  test("cancel by filter counts first, asks, and cancels those alone; nothing chosen is refused", async () => {
    for (const id of ["c1", "c2"]) await hookwell(`emit user.cancelled --project live --id ${id} --data {}`);
    await hookwell("emit user.kept --project live --id c3 --data {}");
    const [{ id: subscription }] = (await json("subscriptions --url-host", `127.0.0.1:${receiver.port}`))
      .items;
    await hookwell(`subscriptions pause ${subscription}`);
    await work(path);
    const line = "cancel --type user.cancelled --since 1h";
    expect(await json(`${line} --dry-run`)).toEqual({ count: 2 });
    const asked: string[] = [];
    const ask = (answer: string) => async (question: string) => {
      asked.push(question);
      return answer;
    };
    expect((await hookwell(line, { ask: ask("no") })).code).toBe(1);
    expect(asked).toEqual(["Cancel 2 pending deliveries? [y/N] "]);
    const pending = async () => (await json("deliveries --status pending --since 1h")).items.length;
    expect(await pending()).toBe(3);
    expect((await hookwell(line, { ask: ask("y") })).stdout).toBe("2 deliveries are cancelled\n");
    expect(await pending()).toBe(1);
    expect((await hookwell(`${line} --type user.kept`, { stopped: AbortSignal.abort() })).code).toBe(130);
    await hookwell("cancel --event c3");
    await hookwell(`subscriptions resume ${subscription}`);
  });

  test("replay counts, queues as a job, waits until it is queued, and can be listed, shown and stopped", async () => {
    status = 204;
    const line = "replay --type user.cancelled --status cancelled --since 1h";
    expect(await json(`${line} --dry-run`)).toEqual({ count: 2 });
    expect((await json("replay list")).items).toEqual([]);
    const { id } = await json(`${line} --detach`);
    expect(await json(`replay show ${id}`)).toMatchObject({ id, status: "running", count: 2, queued: 0 });
    expect(await json(`replay stop ${id}`)).toMatchObject({ id, status: "stopped" });
    expect((await hookwell(`replay stop ${id}`)).code).toBe(1);
    const watched = await hookwell(line, { stopped: AbortSignal.abort() });
    expect(watched.code).toBe(130);
    const [goesOn] = /rpl_[\w-]+/.exec(watched.stderr)!;
    expect((await hookwell(`replay stop ${goesOn}`)).code).toBe(0);

    await using hooks = beside(path);
    const running = hooks.start();
    const drawn: string[] = [];
    const done = await hookwell(line, { ask: async () => "yes", redraw: (text) => void drawn.push(text) });
    await running.stop();
    expect(done.code).toBe(0);
    expect(done.stdout).toMatch(/^status +done$/m);
    expect((await json("replay list --status done")).items).toMatchObject([{ count: 2, queued: 2 }]);
    expect((await json("replay list")).items).toHaveLength(3);
    await work(path);
    expect((await json("deliveries --type user.cancelled --status delivered")).items).toHaveLength(2);
  });

  test("a list is read page after page; --cursor goes on where --limit ended", async () => {
    const events = Array.from({ length: 105 }, (_, n) => ({
      type: "page.turned",
      projectId: "paging",
      data: n,
    }));
    await using hooks = beside(path);
    await hooks.emitManyUnknown(events.slice(0, 100), { tx: "own" });
    await hooks.emitManyUnknown(events.slice(100), { tx: "own" });
    const all = await json("events --project paging --all");
    expect(all.items).toHaveLength(105);
    expect(all.next_cursor).toBeNull();
    const first = await json("events --project paging --limit 103");
    expect(first.items).toEqual(all.items.slice(0, 103));
    const rest = await json("events --project paging --cursor", first.next_cursor);
    expect(rest.items).toEqual(all.items.slice(103));
    const table = await hookwell("events --project paging --limit 2");
    expect(table.stdout.split("\n")).toHaveLength(4);
    expect(table.stderr).toMatch(/There are more: add --all, or --cursor \S+\n$/);
    expect((await json("events --project paging --until 1h")).items).toEqual([]);
    expect((await json("events --project paging --since 1h --limit 1")).items).toHaveLength(1);
  });

  test("a table fits the terminal: nothing is wider, and what is missing is marked", async () => {
    const { stdout } = await hookwell("events --limit 5", { columns: 60 });
    const lines = stdout.trimEnd().split("\n");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
    expect(lines[0]).toMatch(/^EVENT +OUTCOME/);
    expect(lines[1]).toMatch(/…$/);
  });

  test("subscriptions: created with its secret shown once, changed, moved, deleted", async () => {
    const headers = join(directory, "headers.json");
    writeFileSync(headers, '{"authorization":"Bearer hunter2"}');
    const made = await json(
      `subscriptions create --project live --url https://a.example/hook --type a.b --rate-limit 10/1m --max-in-flight 2 --ordering subject --metadata team=billing --metadata zone=eu --external-id x1 --headers-file ${headers}`,
    );
    expect(made.secret).toMatch(/^whsec_/);
    expect(made).toMatchObject({
      rate_limit: { limit: 10, per_seconds: 60 },
      max_in_flight: 2,
      ordering: "subject",
      header_names: ["authorization"],
    });
    const shown = await hookwell(`subscriptions ${made.id}`);
    expect(shown.stdout).not.toMatch(/whsec_|hunter2/);
    expect(await json(`subscriptions get ${made.id}`)).not.toHaveProperty("secret");
    expect(
      await json(
        `subscriptions update ${made.id} --all-types --no-rate-limit --no-headers --metadata team= --metadata new=1 --description`,
        "for a colleague",
      ),
    ).toMatchObject({
      event_types: [],
      rate_limit: null,
      header_names: [],
      metadata: { zone: "eu", new: "1" },
      description: "for a colleague",
      max_in_flight: 2,
    });
    expect((await hookwell(`subscriptions update ${made.id} --url http://10.0.0.1/`)).code).toBe(2);
    for (const [verb, status] of [
      ["pause", "paused"],
      ["resume", "active"],
      ["disable", "disabled"],
      ["enable", "active"],
    ])
      expect((await json(`subscriptions ${verb} ${made.id}`)).items).toMatchObject([{ id: made.id, status }]);
    expect((await json("subscriptions --external-id x1")).items).toHaveLength(1);
    const asked: string[] = [];
    const ask = async (question: string) => {
      asked.push(question);
      return "n";
    };
    expect((await hookwell(`subscriptions delete ${made.id}`, { ask })).code).toBe(1);
    expect(asked[0]).toContain(made.id);
    expect((await json("subscriptions --external-id x1")).items).toHaveLength(1);
    expect((await hookwell(`subscriptions delete ${made.id} --yes`, { ask })).code).toBe(0);
    expect((await json("subscriptions --external-id x1")).items).toEqual([]);
    expect((await json("subscriptions --status deleted")).items).toMatchObject([{ id: made.id }]);
  });

  test("rotate-secret shows the new secret once; --overlap 0s ends the old one", async () => {
    const made = await json("subscriptions create --project live --url https://r.example/");
    const { secret } = await json(`subscriptions rotate-secret ${made.id} --overlap 2h`);
    expect(secret).toMatch(/^whsec_/);
    expect(secret).not.toBe(made.secret);
    const shown = await hookwell(`subscriptions rotate-secret ${made.id} --overlap 0s --yes`);
    expect(shown.stdout).toMatch(/^whsec_\S+\n$/);
    expect(shown.stderr).toContain("once");
    expect((await hookwell(`subscriptions rotate-secret ${made.id} --overlap 40d`)).code).toBe(2);
    expect((await hookwell("subscriptions rotate-secret sub_x")).code).toBe(1);
  });

  test("test sends one example and says how it went: exit 1 when it was not accepted", async () => {
    const [{ id }] = (await json("subscriptions --url-host", `127.0.0.1:${receiver.port}`)).items;
    status = 204;
    expect(await json(`subscriptions test ${id} --dev`)).toMatchObject({
      event_type: "hookwell.test",
      attempt: { status_code: 204, error_code: null },
    });
    status = 401;
    const refused = await hookwell(`subscriptions test ${id} --dev`);
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(/^result\s+http_401$/m);
    const blocked = await hookwell(`subscriptions test ${id}`);
    expect(blocked.code).toBe(1);
    expect(blocked.stdout).toMatch(/^result\s+blocked_address$/m);
  });

  test("prune deletes what is old enough, in batches, and leaves the rest; --dry-run only says what that is", async () => {
    const monthsAgo = new Date(Date.now() - 100 * 86_400_000);
    await using then = beside(path, { now: () => monthsAgo });
    const old = Array.from({ length: 25 }, (_, n) => ({ type: "long.ago", projectId: "old", data: n }));
    await then.emitManyUnknown(old, { tx: "own" });
    await then.drain({ deadlineMs: 10_000 });
    const before = (await json("events --all")).items;
    const dry = await json("prune --dry-run");
    expect(Date.now() - Date.parse(dry.before.events)).toBeGreaterThan(29.9 * 86_400_000);
    expect((await hookwell("prune", { ask: async () => "" })).code).toBe(1);
    expect((await json("events --all")).items).toEqual(before);
    const drawn: string[] = [];
    const pruned = await hookwell("prune --batch 10 --json", { redraw: (text) => void drawn.push(text) });
    expect(JSON.parse(pruned.stdout)).toEqual({
      pruned_deliveries: 0,
      pruned_events: 25,
      cancelled: 0,
      failed: 0,
    });
    expect(drawn[0]).toContain("rows dealt with");
    expect(drawn.at(-1)).toBe("");
    expect((await json("events --all")).items).toEqual(before.slice(0, -25));
    const interrupted = await hookwell("prune", { stopped: AbortSignal.abort() });
    expect(interrupted).toMatchObject({ code: 130, stdout: "" });
  });

  test("a secret of one's own comes from a file or standard input, and is not printed", async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const line = "subscriptions create --project live --url https://b.example/ --secret-file -";
    const { code, stdout, stderr } = await hookwell(line, { readInput: async () => `${secret}\n` });
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain("whsec_");
  });

  test("keys: made with its key shown once, listed without it, deleted", async () => {
    const made = await json("keys create --name ci --scope emit,read --project live --expires 90d");
    expect(made).toMatchObject({ scopes: ["emit", "read"], project_id: "live", last_used_at: null });
    expect(made.key).toMatch(/^hwk_/);
    const days = (Date.parse(made.expires_at) - Date.parse(made.created_at)) / 86_400_000;
    expect(Math.round(days)).toBe(90);
    const list = await hookwell("keys");
    expect(list.stdout).toContain(made.id);
    expect(list.stdout).not.toContain(made.key);
    expect((await hookwell(`keys delete ${made.id}`)).code).toBe(0);
    expect((await json("keys list")).items).toEqual([]);
  });

  test("--config: the application's types, default project and database", async () => {
    const inConfig = (line: string) =>
      runProcess([...line.split(" "), "--config", config], {
        environment: { TEST_DATABASE: join(directory, "app.db") },
      });
    const wrong = await inConfig('emit parcel.sent --data {"id":7}');
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain("data/id: ");
    const sent = await inConfig('emit parcel.sent --data {"id":"p1"} --json');
    expect(sent).toMatchObject({ code: 0, stderr: "" });
    const { id } = JSON.parse(sent.stdout);
    const shown = await inConfig(`events ${id} --json`);
    expect(JSON.parse(shown.stdout)).toMatchObject({ project_id: "configured", data: { id: "p1" } });
  });
});

test("the same commands on PostgreSQL", async () => {
  const database = await freshPostgres();
  try {
    const HOOKWELL_ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 1).toString("base64")}`;
    const onPostgres = async (line: string) =>
      run(line.split(" "), { HOOKWELL_DATABASE_URL: database.url, HOOKWELL_ENCRYPTION_KEYS });
    const before = await onPostgres("deliveries");
    expect(before.code).toBe(1);
    expect(before.stderr).toContain("hookwell migrate");
    expect((await onPostgres("migrate")).code).toBe(0);
    const made = await onPostgres("subscriptions create --project live --url https://a.example/ --json");
    expect((await onPostgres("emit a.b --project live --id e1 --data {}")).stdout).toBe("e1\n");
    expect(JSON.parse((await onPostgres("events e1 --json")).stdout)).toMatchObject({ outcome: "pending" });
    const listed = await onPostgres("subscriptions --json");
    const { secret: _, ...record } = JSON.parse(made.stdout);
    expect(JSON.parse(listed.stdout).items).toEqual([record]);
  } finally {
    await database.drop();
  }
});
