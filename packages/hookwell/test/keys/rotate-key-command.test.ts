import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sqliteStore } from "hookwell/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { generateKey } from "../../src/store/sealing.ts";
import { run } from "../cli/in-process.ts";
import { Cli } from "../cli/processes.ts";
import { memoryHome } from "../support/memory-home.ts";
import { own, subscription } from "./key-world.ts";

const [k1, k2] = [`k1:${generateKey()}`, `k2:${generateKey()}`];

describe("hookwell rotate-key", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(memoryHome(2 ** 28), "hookwell-rotate-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const path = () => join(directory, "hookwell.db");
  /** A process that begins with these keys ("" = the key file), and makes subscriptions. */
  async function subscribe(encryptionKeys: string, ...ids: readonly string[]): Promise<void> {
    const store = sqliteStore({ path: path(), migrate: true, ...(encryptionKeys && { encryptionKeys }) });
    await store.open({ withKeys: true });
    for (const id of ids) await store.createSubscription(own, subscription(id));
    await store.close();
  }
  const environment = (keys: string) => ({
    HOOKWELL_DATA_DIR: directory,
    ...(keys && { HOOKWELL_ENCRYPTION_KEYS: keys }),
  });
  const rotateKey = (keys: string, ...args: readonly string[]) =>
    run(["rotate-key", ...args], environment(keys));

  test("says what is left, seals it, and says that the old key may be removed", async () => {
    await subscribe(k1, "sub_a", "sub_b");
    await subscribe(`${k2},${k1}`, "sub_c");
    const both = `${k2},${k1}`;
    const before = await rotateKey(both, "--check");
    expect(before.code).toBe(1);
    expect(before.stdout).toBe("Sealed texts: 2 with k1, 1 with k2.\n2 left for `hookwell rotate-key`.\n");
    expect(JSON.parse((await rotateKey(both, "--check", "--json")).stdout)).toEqual({
      newest: "k2",
      sealed: { k1: 2, k2: 1 },
      left: 2,
      needed: ["k1", "k2"],
    });
    const done = await rotateKey(both);
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(done.stdout).toContain("2 texts were sealed anew. Sealed texts: 3 with k2.");
    expect(done.stdout).toMatch(/Only k2 is needed from now on: older keys \(k1\) may be removed/);
    const after = await rotateKey(k2, "--check");
    expect(after).toMatchObject({ code: 0, stderr: "" });
    expect(after.stdout).toContain("Nothing is left, and no older key is needed.");
    expect(JSON.parse((await rotateKey(k2, "--json")).stdout)).toEqual({
      newest: "k2",
      sealed: { k2: 3 },
      left: 0,
      needed: ["k2"],
      resealed: 0,
      damaged: [],
      retired: [],
    });
    for (const output of [before, done, after])
      for (const key of [k1, k2]) expect(`${output.stdout}${output.stderr}`).not.toContain(key.slice(3));
  });

  test("a key that no process has used yet is asked about, and a no changes nothing", async () => {
    await subscribe(k1, "sub_a");
    const questions: string[] = [];
    const ask = async (question: string): Promise<string> => {
      questions.push(question);
      return "n";
    };
    const refused = await run(["rotate-key"], environment(`${k2},${k1}`), { ask });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("No process has used k2 yet");
    expect(questions).toEqual(["Seal everything with k2 now? [y/N] "]);
    await subscribe(k1, "sub_b");
    expect((await run(["rotate-key", "--yes"], environment(`${k2},${k1}`), { ask })).code).toBe(0);
    await expect(subscribe(k1)).rejects.toThrow(/k1 was retired/);
    await subscribe(k2, "sub_c");
  });

  test("with a key file: the new key goes in front, and the old one may be taken out", async () => {
    await subscribe("", "sub_a");
    const file = `${path()}.key`;
    const { stdout: entry } = await run(["keys", "generate", "--id", "k2"]);
    writeFileSync(file, `${entry.trim()},${readFileSync(file, "utf8")}`);
    expect((await rotateKey("")).code).toBe(0);
    writeFileSync(file, entry);
    await subscribe("", "sub_b");
    expect((await rotateKey("", "--check")).code).toBe(0);
  });

  test("bad input: a wrong list, an old list, no database", async () => {
    const missing = await rotateKey(k1);
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toContain("hookwell migrate");
    await subscribe(k1, "sub_a");
    await subscribe(`${k2},${k1}`, "sub_b");
    for (const [keys, message] of [
      [k2, 'add "k1"'],
      [`k1:${generateKey()},${k2}`, "k1 does not open"],
      [`${k1},${k2}`, "k2 came to this database after it"],
      ["nonsense", "has no key id"],
    ] as const) {
      const refused = await rotateKey(keys);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toContain(message);
      expect(refused.stderr).not.toContain(k1.slice(3));
    }
    expect((await rotateKey(`${k2},${k1}`, "--chek")).code).toBe(2);
  });

  test("killed in the middle it is run again, and a Ctrl-C ends it with 130 between two steps", async () => {
    await subscribe(k1, "sub_a");
    const database = new DatabaseSync(path(), { timeout: 5_000 });
    // Many versions at the price of one: a version that is sealed to another row counts as damaged, and is moved.
    database.exec(`INSERT INTO hookwell_endpoint
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      SELECT printf('end_x%05d', i), subscription_id, url, sealed, NULL, 0 FROM n, hookwell_endpoint`);
    const left = () =>
      Number(
        database.prepare("SELECT count(*) AS n FROM hookwell_endpoint WHERE sealed LIKE 'k1:%'").get()!.n,
      );
    const both = `${k2},${k1}`;
    await using killed = new Cli(["rotate-key"], { environment: environment(both) });
    while (left() > 2_000) await new Promise((resolve) => setImmediate(resolve));
    // It is held in the middle, so that the signal cannot come too late.
    database.exec("BEGIN IMMEDIATE");
    killed.signal("SIGKILL");
    await killed.finished;
    database.exec("ROLLBACK");
    expect(left()).toBeGreaterThan(0);
    expect((await rotateKey(both, "--check")).code).toBe(1);

    const stop = new AbortController();
    stop.abort();
    const interrupted = await run(["rotate-key"], environment(both), { stopped: stop.signal });
    expect(interrupted.code).toBe(130);
    const end = await rotateKey(both, "--json");
    expect(JSON.parse(end.stdout)).toMatchObject({ left: 0, needed: ["k2"], retired: ["k1"] });
    expect(left()).toBe(0);
    database.close();
    await subscribe(k2);
  });
});
