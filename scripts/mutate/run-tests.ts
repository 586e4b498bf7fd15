import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { patternOf, root } from "./items.ts";

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

export interface TestRun {
  readonly cwd: string;
  readonly files: readonly string[];
  readonly items: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Test files at one time. */
  readonly workers: number;
  /** A run that does not end before has failed. Tests have a limit of their own: this is for what is deaf to it. */
  readonly longestMs?: number;
  /** Stops it: everything it started is killed. */
  readonly signal: AbortSignal;
  /** False = it ends with the first test that fails. */
  readonly all?: boolean;
  readonly onFile?: () => void;
}

/** Names of the tests that failed, and how many passed, of those that carry one of the items. */
export interface TestResult {
  readonly failed: readonly string[];
  readonly passed: number;
  readonly output: string;
}

/** @throws Error when it was stopped */
export async function runTests(run: TestRun): Promise<TestResult> {
  const report = join(run.cwd, "node_modules/.report.json");
  rmSync(report, { force: true });
  const pattern = `(${run.items.map(patternOf).join("|")})`;
  const args = [
    join(root, "node_modules/vitest/vitest.mjs"),
    "run",
    ...run.files,
    "-t",
    pattern,
    ...(run.all ? [] : ["--bail=1"]),
    `--maxWorkers=${run.workers}`,
    "--reporter=default",
    "--reporter=json",
    `--outputFile=${report}`,
  ];
  // A group of its own: tests run in processes of this one, and none of them may outlive it.
  const child = spawn(process.execPath, args, {
    cwd: run.cwd,
    env: run.env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { output, timedOut } = await ended(child, run);
  if (run.signal.aborted) throw new Error("stopped");
  if (timedOut) return { failed: [`no end within ${run.longestMs! / 1_000} s`], passed: 0, output };
  let tests: { readonly fullName: string; readonly status: string }[];
  try {
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
    const carries = new RegExp(pattern);
    tests = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ fullName }) => carries.test(fullName));
  } catch {
    return { failed: [], passed: 0, output };
  }
  const failed = tests.filter(({ status }) => status === "failed").map(({ fullName }) => fullName);
  return { failed, passed: tests.filter(({ status }) => status === "passed").length, output };
}

/** Kills a process and all that it started. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}

async function ended(
  child: ChildProcess,
  { signal, longestMs, onFile }: TestRun,
): Promise<{ readonly output: string; readonly timedOut: boolean }> {
  let output = "";
  let timedOut = false;
  const kill = (): void => killGroup(child);
  const late = (): void => {
    timedOut = true;
    kill();
  };
  const timer = longestMs === undefined ? undefined : setTimeout(late, longestMs);
  signal.addEventListener("abort", kill);
  if (signal.aborted) kill();
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (part: Buffer) => {
      output += part;
      // The reporter writes a line for each file that is done.
      for (const _ of String(part).matchAll(/^ [^\w\s] .*\.test\.ts \(/gm)) onFile?.();
    });
  await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  signal.removeEventListener("abort", kill);
  kill();
  return { output, timedOut };
}
