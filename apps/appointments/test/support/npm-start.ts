import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";
import { compileCache } from "../../../../packages/hookwell/test/support/compile-cache.ts";
import { freshPostgres } from "../../../../packages/hookwell/test/support/databases.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: { start: string };
};

/** Run after the test, the last one first. */
export const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A new directory that is removed after the test. */
export function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "hookwell-start-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A process that runs the start script the way npm does, but for its look at what is installed. */
class Started {
  readonly child: ChildProcess;
  output = "";
  #changed = (): void => {};
  constructor(environment: Record<string, string>) {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(HOOKWELL_|DATABASE_URL|SMTP_URL|CALENDAR_URL|PUBLIC_URL|PORT$|HOST$|NODE_)/.test(name),
    );
    this.child = spawn("/bin/sh", ["-c", scripts.start], {
      cwd: root,
      env: {
        ...Object.fromEntries(inherited),
        PATH: [join(root, "node_modules/.bin"), process.env.PATH].join(delimiter),
        PORT: "0",
        HOST: "127.0.0.1",
        NODE_COMPILE_CACHE: compileCache,
        ...environment,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.child.stdout!, this.child.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
        this.#changed();
      });
    this.child.on("exit", () => this.#changed());
    cleanups.push(() => this.child.exitCode ?? this.child.kill("SIGKILL"));
  }

  /** The output, once it has the text. */
  async said(text: string): Promise<string> {
    while (!this.output.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`It ended without saying "${text}":\n${this.output}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
    return this.output;
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "close");
    return this.child.exitCode;
  }
}

export const started = (environment: Record<string, string>) => new Started(environment);
export const addressIn = (output: string): string => /Received webhooks\s+(\S+)\/receiver/.exec(output)![1]!;
/** The link of the example invitation, when it was printed. */
export const linkIn = (output: string): string | undefined =>
  /^ {2}(http\S+\/s\/[0-9a-f]{64})$/m.exec(output)?.[1];
/** The three commands that the banner prints. */
export const commandsIn = (output: string): string[] =>
  output.split("\n").filter((line) => line.startsWith("curl "));

/** Runs a script; answers what it printed. @throws Error when it fails */
export async function shell(script: string, environment: Record<string, string> = {}): Promise<string> {
  const child = spawn("/bin/sh", ["-e"], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  child.stdin.end(script);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`The shell ended with ${code}:\n${output}`);
  return output;
}

export const count = (text: string, part: string): number => text.split(part).length - 1;

/** The receiver page, once it is as wanted. */
export async function receiverPage(url: string, holds: (text: string) => boolean): Promise<string> {
  for (;;) {
    const text = await (await fetch(`${url}/receiver`)).text();
    if (holds(text)) return text;
    await setTimeout(20);
  }
}

/** Where a start finds its database. */
export async function place(dialect: "sqlite" | "postgres"): Promise<Record<string, string>> {
  const HOOKWELL_DATA_DIR = join(directory(), "not", "there", "yet");
  if (dialect === "sqlite") return { HOOKWELL_DATA_DIR };
  const { url, drop } = await freshPostgres();
  cleanups.push(drop);
  return { HOOKWELL_DATA_DIR, DATABASE_URL: url };
}

/** A start that is ready, with what it printed. */
export async function running(environment: Record<string, string>) {
  const process = started(environment);
  const output = await process.said("Stop with Ctrl-C");
  return { child: process.child, output, url: addressIn(output), ended: () => process.ended() };
}
