import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createHookwell } from "../../src/publish/create-hookwell.ts";
import { MemoryOutbox } from "../../src/store/memory/index.ts";
import { type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { run as runCommand } from "./in-process.ts";
import { run as spawnAndWait } from "./processes.ts";

let directory: string;
let store: SqliteOutbox;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "hookwell-hold-"));
  store = sqliteStore({ path: join(directory, "hookwell.db"), migrate: true });
  await store.open({ withKeys: true });
});
afterAll(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});
beforeEach(async () => {
  for (const { id } of await store.listHolds()) await store.releaseHold({ kind: "own" }, { id });
});

const run = (...args: string[]) => runCommand(args, { HOOKWELL_DATA_DIR: directory, USER: "anna" });

describe("hookwell hold and release", () => {
  test("hold says what it does and how it ends; a second time it says that nothing changed", async () => {
    const first = await run("hold", "--type", "booking.*", "--reason", "the receiver moves");
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toContain("Held: type booking.*.");
    expect(first.stdout).toContain("hookwell release --type 'booking.*'");
    const [hold] = await store.listHolds();
    expect(hold).toMatchObject({
      selector: { type: "booking.*" },
      heldBy: "anna",
      reason: "the receiver moves",
    });
    const again = await run("hold", "--type", "booking.*", "--by", "ben");
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(
      /^Already held: type booking\.\* \(since .*, by anna: the receiver moves\)\. Nothing/,
    );
    expect(await store.listHolds()).toHaveLength(1);
  });

  test("--list shows what, since when, by whom and why; --json is what the API answers", async () => {
    expect(await run("hold", "--list")).toMatchObject({ stdout: "", stderr: "Nothing is held.\n" });
    await run("hold", "--all", "--by", "ci", "--reason", "the\n move");
    await run("hold", "--project", "live");
    const lines = (await run("hold", "--list")).stdout.split("\n");
    expect(lines[0]).toMatch(/^HELD +SINCE +BY +REASON +ID$/);
    expect(lines[1]).toMatch(/^project live +20\S+.* +anna +- +hld_/);
    expect(lines[2]).toMatch(/^everything +20\S+.* +ci +the move +hld_/);
    const { items } = JSON.parse((await run("hold", "--list", "--json")).stdout);
    expect(items[0]).toEqual({
      id: expect.stringMatching(/^hld_/),
      kind: "project",
      project_id: "live",
      type: null,
      reason: null,
      held_by: "anna",
      created_at: expect.any(String),
    });
  });

  test("release ends the hold of the same words, and says what is still held", async () => {
    await run("hold", "--all");
    await run("hold", "--project", "live");
    const released = await run("release", "--all");
    expect(released.code).toBe(0);
    expect(released.stdout).toMatch(/^Released: everything\.\nStill held: project live \(since .*\)\.\n$/);
    const again = await run("release", "--all");
    expect(again.code).toBe(0);
    expect(again.stdout).toContain("Not held: everything. Nothing changed.");
    const json = JSON.parse((await run("release", "--project", "live", "--json")).stdout);
    expect(json).toMatchObject({ released: { kind: "project" }, given_back: 0, still_held: [] });
  });

  test.each([
    [["hold"], /one of --all \(everything\), --project <id> and --type <type>/],
    [["hold", "--reason", "x"], /one of --all/],
    [["hold", "--all", "--project", "live"], /one of --all/],
    [["release"], /one of --all/],
    [["release", "--type", "a", "--all"], /one of --all/],
    [["hold", "--list", "--all"], /--list/],
    [["hold", "--type", "*"], /--type must be an event type/],
    [["hold", "--type", "Booking"], /--type must be/],
    [["hold", "--project", ""], /--project is empty/],
    [["hold", "booking.created"], /one of --all/],
    [["release", "--type", "a..b"], /event type/],
  ])("%j is a wrong command line: exit 2 with the reason, and nothing is held", async (args, reason) => {
    const { code, stderr } = await run(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(reason);
    expect(await store.listHolds()).toEqual([]);
  });

  test("where there is no database, none is made", async () => {
    const empty = join(directory, "nothing-here");
    const { code, stderr } = await spawnAndWait(["hold", "--all"], {
      environment: { HOOKWELL_DATA_DIR: empty },
    });
    expect(code).toBe(1);
    expect(stderr).toContain("hookwell migrate");
    expect(() => rmSync(empty)).toThrow("ENOENT");
  });

  test("a worker that starts under a hold says so in its log", async () => {
    const lines: string[] = [];
    const log = (line: string): void => void lines.push(line);
    const memory = new MemoryOutbox();
    const hooks = createHookwell({ store: memory, logger: { info: log, warn: log, error: log } });
    await hooks.holds.set({ all: true }, { reason: "the move", heldBy: "anna" });
    const run_ = hooks.start();
    await expect.poll(() => lines.join("\n")).toMatch(/everything \(since .*, by anna: the move\)/);
    await run_.stop();
  });
});
