/** One command of the CLI. */
export interface Command {
  /** As typed: `migrate`, `keys generate`. */
  readonly name: string;
  /** One line for the list. */
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  /** Answers the exit code; undefined = it goes on running until a signal ends it. */
  run(args: readonly string[], terminal: Terminal): Promise<number | undefined>;
}

/** What a command may touch of the process it runs in. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Results: what a script would read. */
  print(line: string): void;
  /** Notes and faults: what a person reads. */
  note(line: string): void;
}

/** Exit codes of every command. */
export const exitCode = { ok: 0, failed: 1, usage: 2 } as const;

export const exitCodesHelp = `Exit codes
  0  done, or stopped by a signal in good order
  1  failed; the message says why
  2  the command line or a setting is wrong
`;

/** The command line is wrong. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
