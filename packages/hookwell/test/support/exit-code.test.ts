import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

test("a run that failed ends with its own exit code, although the test server was imported", () => {
  const script = `
    const { importWithoutExit } = await import(${JSON.stringify(new URL("./embedded-postgres.ts", import.meta.url).href)});
    await importWithoutExit();
    process.exitCode = 3;`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(3);
});
