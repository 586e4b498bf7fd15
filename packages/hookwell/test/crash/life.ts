import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { compileCache } from "../support/compile-cache.ts";
import { reached } from "./points.ts";

const patienceMs = 120_000;
const running = new Set<ChildProcess>();

/** Starts a program of this directory; what it should do is in its environment. */
export function startProgram(
  name: "child.ts" | "replay-child.ts" | "load-worker.ts",
  env: Readonly<Record<string, string>>,
): ChildProcessByStdio<Writable, Readable, Readable> {
  const file = fileURLToPath(new URL(name, import.meta.url));
  const program = spawn(process.execPath, ["--conditions=@hookwell/source", "--no-warnings", file], {
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: "pipe",
    // A group of its own: Ctrl-C in a terminal is for the one that started it, which then ends it.
    detached: true,
  });
  running.add(program);
  program.once("close", () => running.delete(program));
  return program;
}

/** Ends every program that still runs. */
export function killPrograms(): void {
  for (const program of running) program.kill("SIGKILL");
}

/**
 * Runs one life of a process: until it reports its point and is killed there with SIGKILL ("killed"), or until it ends
 * by itself with exit code 0. Resolves when it is gone.
 * @throws when it ends otherwise, with what it wrote to standard error
 */
export async function live(name: "child.ts" | "replay-child.ts", order: object): Promise<"killed" | "ended"> {
  const life = startProgram(name, { CRASH_ORDER: JSON.stringify(order) });
  let errors = "";
  let there = false;
  life.stderr.on("data", (part) => {
    errors += part;
  });
  life.stdout.on("data", (part) => {
    there ||= String(part).includes(reached);
    if (there) life.kill("SIGKILL");
  });
  const guard = setTimeout(() => life.kill("SIGKILL"), patienceMs);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    life.once("close", (...how) => resolve(how));
  });
  clearTimeout(guard);
  if (there && signal === "SIGKILL") return "killed";
  if (code === 0) return "ended";
  throw new Error(
    `A process did not come to ${JSON.stringify(order)}; it ended with ${code ?? signal}:\n${errors}`,
  );
}
