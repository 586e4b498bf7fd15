import { createInterface } from "node:readline/promises";
import type { Terminal } from "../command.ts";

const clearLine = "\r\u001b[K";

export interface ProcessTerminal {
  readonly terminal: Terminal;
  /** Ends the process when everything is written: with `code`, or with 1 when the output could not be. */
  end(code: number): void;
}

/** The terminal, or the pipes, of this process. */
export function processTerminal(): ProcessTerminal {
  const { stdin, stdout, stderr, env } = process;
  const unread = new AbortController();
  let failed: Error | undefined;
  const onClosed = (error: NodeJS.ErrnoException): void => {
    // `| head` has read enough. What it was not told is lost, and no fault of this command; a full disk is one.
    if (error.code === "EPIPE") unread.abort();
    else failed ??= error;
  };
  stdout.on("error", onClosed);
  stderr.on("error", onClosed);
  const plain = (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb";
  let stopped: AbortController | undefined;
  let drawn = false;
  const clear = (): void => {
    if (drawn) stderr.write(clearLine);
    drawn = false;
  };
  const terminal: Terminal = {
    environment: env,
    print(line) {
      clear();
      if (!unread.signal.aborted) stdout.write(`${line}\n`);
    },
    note(line) {
      clear();
      stderr.write(`${line}\n`);
    },
    ...(stdout.isTTY && { columns: stdout.columns, colour: !plain }),
    ...(stderr.isTTY && {
      redraw(text: string) {
        clear();
        const most = Math.max((stderr.columns || 80) - 1, 20);
        stderr.write(text.slice(0, most));
        drawn = text !== "";
      },
    }),
    ...(stdin.isTTY && stderr.isTTY && { ask: askPerson }),
    ...(!stdin.isTTY && { readInput }),
    // Only a command that asks for it takes the signals; every other one ends by them at once.
    get stopped() {
      stopped ??= abortedBySignal();
      return stopped.signal;
    },
    unread: unread.signal,
  };
  return {
    terminal,
    end(code) {
      // Errors of writes are told after their callbacks.
      stdout.write("", () =>
        setImmediate(() => {
          if (!failed) process.exit(code);
          stderr.write(`hookwell: the output cannot be written: ${failed.message}\n`, () => process.exit(1));
        }),
      );
    },
  };
}

function abortedBySignal(): AbortController {
  const controller = new AbortController();
  // The second one ends the process as if nobody listened.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => controller.abort());
  return controller;
}

async function askPerson(question: string): Promise<string> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C and Ctrl-D are a no.
  const closed = new Promise<string>((resolve) => {
    asking.once("close", () => {
      process.stderr.write("\n");
      resolve("");
    });
  });
  try {
    return await Promise.race([asking.question(question), closed]);
  } finally {
    asking.removeAllListeners("close");
    asking.close();
  }
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
