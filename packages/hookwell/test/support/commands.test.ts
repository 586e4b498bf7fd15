import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const scripts = {
  simulate: "scripts/simulate.ts",
  mutate: "scripts/mutate.ts",
  crash: "packages/hookwell/test/crash/main.ts",
  bench: "bench/src/main.ts",
};

function run(name: keyof typeof scripts, ...args: readonly string[]) {
  const script = fileURLToPath(new URL(`../../../../${scripts[name]}`, import.meta.url));
  return spawnSync(process.execPath, ["--conditions=@hookwell/source", script, ...args], {
    encoding: "utf8",
  });
}

test.each([
  ["simulate", ["--bogus"], "--bogus"],
  ["simulate", ["--seeds", "many"], '--seeds must be a whole number, 1 or more, not "many".'],
  ["simulate", ["--seed", ""], '--seed must be a whole number, 0 or more, not "".'],
  ["simulate", ["--plant", "nonsense"], '--plant knows no fault "nonsense".'],
  ["mutate", ["--bogus"], "--bogus"],
  ["mutate", ["--only", "no such fault"], 'No fault, file or item has "no such fault" in it'],
  ["mutate", ["--workers", "0"], '--workers must be a whole number, 1 or more, not "0".'],
  ["crash", ["--bogus"], "--bogus"],
  ["crash", ["--rounds", "0.5"], '--rounds must be a whole number, 1 or more, not "0.5".'],
  ["bench", ["--bogus"], "--bogus"],
  ["bench", ["--only", "latencies"], '--only knows no section "latencies"'],
] as const)(
  "npm run %s -- %j is refused with 2, which nothing that was measured or shown gives",
  (name, args, why) => {
    const { status, stdout, stderr } = run(name, ...args);
    expect(stderr).toContain(why);
    expect(stderr).toContain(`npm run ${name} -- --help says what there is.`);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  },
);

test.each(Object.keys(scripts) as (keyof typeof scripts)[])(
  "npm run %s -- --help says what there is",
  (name) => {
    const { status, stdout, stderr } = run(name, "--help");
    expect(stdout).toContain(`npm run ${name} -- [options]`);
    expect(stdout).toMatch(/Exit code 0: .* 1: .*2: /s);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  },
);
