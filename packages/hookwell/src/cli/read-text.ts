import { readFile } from "node:fs/promises";
import { type Terminal, UsageError } from "./command.ts";

const patienceMs = 2_000;

/** All of standard input. One that never ends must not look like a command that hangs. */
export async function readInput(terminal: Terminal): Promise<string> {
  if (!terminal.readInput) return "";
  const waiting = setTimeout(() => terminal.note("Reading from standard input …"), patienceMs);
  try {
    return await terminal.readInput();
  } finally {
    clearTimeout(waiting);
  }
}

/** A file, or standard input for `-`. @throws UsageError */
export async function readText(terminal: Terminal, file: string): Promise<string> {
  if (file === "-") return readInput(terminal);
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A signing secret: the line feed that ends a file is none of it. @throws UsageError */
export async function readSecret(terminal: Terminal, file: string): Promise<string> {
  const secret = (await readText(terminal, file)).replace(/\r?\n$/, "");
  if (secret === "") throw new UsageError("--secret-file is empty.");
  return secret;
}
