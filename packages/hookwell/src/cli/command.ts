import type { Options } from "./options.ts";

/** One command of the CLI. */
export interface Command {
  /** As typed: `migrate`, `keys generate`. */
  readonly name: string;
  /** One line for the list. */
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  /** What it takes, so that an error about a field can name the option. */
  readonly options?: Options;
  /** Answers the exit code; undefined = it goes on running until a signal ends it. */
  run(args: readonly string[], terminal: Terminal): Promise<number | undefined>;
}

/** What a command may touch of the process it runs in. Absent parts: nobody and nothing is there. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Results: what a script would read. */
  print(line: string): void;
  /** Notes and faults: what a person reads. */
  note(line: string): void;
  /** Width of standard output, when that is a terminal. */
  readonly columns?: number;
  /** Standard output may have colours. */
  readonly colour?: boolean;
  /** Writes over the last line of standard error, when that is a terminal; empty text clears it. */
  redraw?(text: string): void;
  /** Asks the person at the terminal. */
  ask?(question: string): Promise<string>;
  /** All of standard input, when that is no terminal. */
  readInput?(): Promise<string>;
  /** Aborted by Ctrl-C or SIGTERM: a long work ends between two steps. */
  readonly stopped?: AbortSignal;
  /** Aborted when nobody reads standard output any more (`| head`): what only prints may end. */
  readonly unread?: AbortSignal;
}

/** Exit codes of every command. */
export const exitCode = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** The same in words, for `--help` and docs/reference/cli.md. */
export const exitCodeMeanings: readonly { readonly code: number; readonly meaning: string }[] = [
  { code: exitCode.ok, meaning: "done, or stopped by a signal in good order" },
  { code: exitCode.failed, meaning: "failed or not found; the message says why" },
  { code: exitCode.usage, meaning: "the command line, a value in it or a setting is wrong" },
  {
    code: exitCode.interrupted,
    meaning: "interrupted by Ctrl-C before it was done; what was done is kept",
  },
];

export const exitCodesHelp = `Exit codes
${exitCodeMeanings.map(({ code, meaning }) => `  ${String(code).padEnd(3)}  ${meaning}`).join("\n")}
`;

/** The command line is wrong. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
