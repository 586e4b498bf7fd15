import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { commandGroups } from "../../src/cli/commands.ts";
import { KeyRing } from "../../src/store/sealing.ts";
import { run } from "./in-process.ts";
import { Cli, run as spawnAndWait } from "./processes.ts";

const names = commandGroups.flatMap(({ commands }) => commands.map(({ name }) => name));

describe("hookwell on the command line", () => {
  test("--help lists every command and the exit codes; --version is the package's", async () => {
    const help = await run(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    for (const name of names) expect(help.stdout).toContain(`  ${name} `);
    expect(help.stdout).toContain("Exit codes");
    expect(await spawnAndWait(["--help"])).toEqual(help);
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    expect(await run(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test.each(names)(
    "%s --help says how it is called, its options and its exit codes, and does nothing else",
    async (command) => {
      const help = await run([...command.split(" "), "--help"]);
      expect(help).toMatchObject({ code: 0, stderr: "" });
      expect(help.stdout).toMatch(new RegExp(`^hookwell ${command}: `));
      expect(help.stdout).toContain("--help");
      expect(help.stdout).toContain("Exit codes");
      for (const line of help.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(120);
      const { options = {} } = commandGroups
        .flatMap((group) => group.commands)
        .find(({ name }) => name === command)!;
      for (const option of Object.keys(options)) expect(help.stdout).toContain(`--${option}`);
    },
  );

  test.each([
    [["migrat"], "hookwell migrate"],
    [["server"], "hookwell serve"],
    [["key", "generate"], "hookwell keys generate"],
    [["subscription", "create"], "hookwell subscriptions create"],
    [["delivery"], "hookwell deliveries"],
    [["workers"], "hookwell worker"],
  ])("%j is no command: exit 2, and the nearest one is named", async (args, near) => {
    const { code, stdout, stderr } = await run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(`Did you mean \`${near}\`?`);
  });

  test("a process ends with the code and writes to the stream that are said here", async () => {
    for (const args of [["migrat"], ["serve", "--prot"]])
      expect(await spawnAndWait(args)).toEqual(await run(args));
  });

  test("a reader that has read enough (| head) is no fault: quiet, and exit 0", async () => {
    await using cli = new Cli(["--help"]);
    cli.closeOutput();
    expect(await cli.finished).toMatchObject({ code: 0, stderr: "" });
  });

  test.runIf(existsSync("/dev/full"))("output that cannot be written is a failure: exit 1", async () => {
    const full = openSync("/dev/full", "w");
    await using cli = new Cli(["--help"], { stdout: full });
    const { code, stderr } = await cli.finished;
    closeSync(full);
    expect(code).toBe(1);
    expect(stderr).toContain("ENOSPC");
  });

  test("what resembles nothing gets no suggestion", async () => {
    const { code, stderr } = await run(["deploy-to-the-moon"]);
    expect(code).toBe(2);
    expect(stderr).not.toContain("Did you mean");
  });

  test.each([
    [[], /hookwell <command>/],
    [["serve", "--prot", "1"], /--prot/],
    [["serve", "extra"], /extra/],
    [["worker", "--port", "http"], /--port must be/],
    [["listen", "--port", "70000"], /--port must be/],
    [["listen", "--status", "99"], /--status must be/],
    [["listen", "--secret", " "], /--secret must not be empty/],
    [["migrate", "--sql", "--check"], /one of/],
    [["migrate", "--grant"], /--grant/],
    [["keys", "generate", "--id", "a:b"], /--id must be/],
    [["serve", "--config", "nowhere.ts"], /no file nowhere\.ts/],
  ])("%j is a wrong command line: exit 2 with the reason", async (args, reason) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(reason);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  test("keys generate prints one entry that seals and opens, under an id that is free", async () => {
    const first = await run(["keys", "generate"]);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(KeyRing.parse(first.stdout.trim()).newestId).toBe("k1");
    const HOOKWELL_ENCRYPTION_KEYS = first.stdout.trim();
    const second = await run(["keys", "generate"], { HOOKWELL_ENCRYPTION_KEYS });
    const both = KeyRing.parse(`${second.stdout.trim()},${HOOKWELL_ENCRYPTION_KEYS}`);
    expect(both.newestId).toBe("k2");
    expect(both.open(KeyRing.parse(HOOKWELL_ENCRYPTION_KEYS).seal("text", "row"), "row")).toBe("text");
    expect((await run(["keys", "generate", "--id", "2026-11"])).stdout).toMatch(/^2026-11:/);
  });
});
