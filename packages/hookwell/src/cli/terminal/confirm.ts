import type { Terminal } from "../command.ts";

/**
 * Asks a person before something that cannot be taken back. Where nobody can be asked the command line is taken at
 * its word.
 */
export async function confirmed(
  terminal: Terminal,
  question: string,
  yes: boolean | undefined,
): Promise<boolean> {
  if (yes || !terminal.ask) return true;
  const answer = (await terminal.ask(`${question} [y/N] `)).trim().toLowerCase();
  if (answer === "y" || answer === "yes") return true;
  terminal.note("Nothing was done.");
  return false;
}
