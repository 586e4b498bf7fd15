import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../../../scripts/simulate.ts", import.meta.url));

test.each([
  [["--bogus"], "--bogus"],
  [["--seeds", "many"], "--seeds must be a whole number, 1 or more."],
  [["--plant", "nonsense"], '--plant knows no fault "nonsense".'],
])("npm run simulate -- %j is refused with 2, which no broken promise gives", (args, why) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--conditions=@hookwell/source", script, ...args],
    { encoding: "utf8" },
  );
  expect(stderr).toContain(why);
  expect(stderr).toContain("--help");
  expect(stderr).not.toMatch(/\n\s+at /);
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
});
