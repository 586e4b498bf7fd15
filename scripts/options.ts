import { type ParseArgsConfig, parseArgs } from "node:util";

/** What was asked for on the command line cannot be understood. The message says why, and goes without a stack. */
export class UsageError extends Error {}

/** The values of the options, as parseArgs gives them. @throws UsageError */
export function optionsOf<const Options extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** The number that an option gives. @throws UsageError */
export function wholeNumber(option: string, text: string, least = 1): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(number) && number >= least) return number;
  throw new UsageError(`--${option} must be a whole number, ${least} or more, not ${JSON.stringify(text)}.`);
}

/**
 * Runs a command and sets the exit code of the process: what `main` answers, or 2 for a {@link UsageError}, with where
 * to look. Every other error is the caller's.
 */
export async function runCommand(name: string, main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\nnpm run ${name} -- --help says what there is.\n`);
    process.exitCode = 2;
  }
}
