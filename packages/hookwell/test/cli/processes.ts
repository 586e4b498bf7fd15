import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { compileCache } from "../support/compile-cache.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** A file descriptor that gets standard output. */
  readonly stdout?: number;
  /** Another copy of the CLI's main file. */
  readonly main?: string;
}

/** A real `hookwell` process. Hold it with `await using`: it is ended by its own id. */
export class Cli implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #finished: Promise<Finished>;
  readonly #waiters = new Set<() => void>();
  stdout = "";
  stderr = "";
  #ended = false;

  constructor(args: readonly string[], options: CliOptions = {}) {
    this.#child = spawn(process.execPath, ["--conditions=@hookwell/source", options.main ?? main, ...args], {
      cwd: options.cwd,
      env: cleanEnvironment(options.environment),
      stdio: ["ignore", options.stdout ?? "pipe", "pipe"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      for (const look of this.#waiters) look();
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      for (const look of this.#waiters) look();
    });
    this.#finished = new Promise((resolve, reject) => {
      this.#child.on("error", reject);
      this.#child.on("close", (code) => {
        this.#ended = true;
        for (const look of this.#waiters) look();
        resolve({ code, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Resolves when the process has ended by itself. */
  get finished(): Promise<Finished> {
    return this.#finished;
  }

  /** Resolves with the match once the pattern is in the output. @throws when the process ends before */
  waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
        if (!match && !this.#ended) return;
        this.#waiters.delete(look);
        if (match) resolve(match);
        else reject(new Error(`It ended without ${pattern}.\n${this.stdout}\n${this.stderr}`));
      };
      this.#waiters.add(look);
      look();
    });
  }

  /** Address that it says it listens on. */
  async url(): Promise<string> {
    return (await this.waitFor(/http:\/\/(localhost|127\.0\.0\.1):\d+/))[0];
  }

  /** Nobody reads what it prints any more. */
  closeOutput(): void {
    this.#child.stdout!.destroy();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Finished> {
    this.signal(signal);
    return this.#finished;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) this.signal("SIGKILL");
    await this.#finished;
  }
}

/** Runs a command to its end. */
export async function run(args: readonly string[], options: CliOptions = {}): Promise<Finished> {
  await using cli = new Cli(args, options);
  return await cli.finished;
}

/** The variables of this machine must not reach the tests. */
function cleanEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, NO_COLOR: "1", NODE_COMPILE_CACHE: compileCache, ...more };
}
