import { type ChildProcess, fork } from "node:child_process";

/** Calls over the channel between two processes of ours: one request, one answer. */
type Message =
  | { readonly call: number; readonly method: string; readonly argument: unknown }
  | { readonly answer: number; readonly value?: unknown; readonly error?: string };

export type Handlers = Readonly<Record<string, (argument: never) => unknown>>;

/** In a child: answers the parent's calls. */
export function serve(handlers: Handlers): void {
  process.on("message", async (message: Message) => {
    if (!("call" in message)) return;
    const { call, method, argument } = message;
    try {
      const value = await handlers[method]?.(argument as never);
      process.send?.({ answer: call, value } satisfies Message);
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.send?.({ answer: call, error: text } satisfies Message);
    }
  });
  // A parent that was killed must not leave a busy child behind.
  process.on("disconnect", () => process.exit(0));
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A process of ours, started with `file`. */
export class Child {
  readonly #process: ChildProcess;
  readonly #name: string;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #ending = false;

  constructor(file: URL, name: string, args: readonly string[] = [], execArgv: readonly string[] = []) {
    this.#name = name;
    this.#process = fork(file, args, {
      execArgv: [...process.execArgv, ...execArgv],
      serialization: "advanced",
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process.on("message", (message: Message) => {
      if (!("answer" in message)) return;
      const waiting = this.#waiting.get(message.answer);
      this.#waiting.delete(message.answer);
      if (message.error === undefined) waiting?.resolve(message.value);
      else waiting?.reject(new Error(`${name}: ${message.error}`));
    });
    this.#process.on("exit", (code, signal) => {
      const error = new Error(`The process of ${name} ended (${signal ?? code})`);
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  call<T>(method: string, argument?: unknown): Promise<T> {
    const call = ++this.#calls;
    return new Promise<T>((resolve, reject) => {
      if (this.#process.exitCode !== null) {
        reject(new Error(`The process of ${this.#name} has ended`));
        return;
      }
      this.#waiting.set(call, { resolve: resolve as (value: unknown) => void, reject });
      this.#process.send({ call, method, argument } satisfies Message);
    });
  }

  /** Lets the process end by itself, and resolves when it has. */
  async end(): Promise<void> {
    if (this.#ending || this.#process.exitCode !== null) return;
    this.#ending = true;
    const exited = new Promise<void>((resolve) => this.#process.once("exit", () => resolve()));
    this.#process.disconnect();
    await exited;
  }
}
