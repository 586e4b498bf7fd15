import { generateKey } from "../store/sealing.ts";
import { readFlags } from "./arguments.ts";
import { type Command, exitCode, exitCodesHelp, UsageError } from "./command.ts";

const help = `hookwell keys generate: make an encryption key

  hookwell keys generate [--id <id>]

Options
  --id <id>   name of the key: letters, digits, _ and -, at most 32. Default: the one after the last of k1, k2, …
  --help

It prints one entry of HOOKWELL_ENCRYPTION_KEYS, the keys that seal signing secrets and custom headers in the
database. To change keys, put the new entry behind the old one, joined by a comma, and start every process with that
list before one of them has it in front. \`hookwell rotate-key --help\` has the steps. A key id is never used twice.

  HOOKWELL_ENCRYPTION_KEYS=$(hookwell keys generate)
  HOOKWELL_ENCRYPTION_KEYS=$HOOKWELL_ENCRYPTION_KEYS,$(hookwell keys generate)

Keep it outside the database, with a backup: what it sealed cannot be read without it. It is no key of the REST API:
those are made with \`hookwell keys create\`.

${exitCodesHelp}`;

export const keysGenerate: Command = {
  name: "keys generate",
  summary: "make an encryption key for HOOKWELL_ENCRYPTION_KEYS (no API key)",
  help,
  async run(args, terminal) {
    const { id = freeId(terminal.environment.HOOKWELL_ENCRYPTION_KEYS ?? "") } = readFlags(args, {
      id: { type: "string" },
    });
    if (!/^[A-Za-z0-9_-]{1,32}$/.test(id))
      throw new UsageError("--id must be 1 to 32 letters, digits, _ or -.");
    terminal.print(`${id}:${generateKey()}`);
    return exitCode.ok;
  },
};

/** Not the first free one: a key that was retired is no longer in the list, and its id is not free. */
function freeId(existing: string): string {
  const numbers = existing.split(",").map((entry) => Number(/^k(\d{1,9}):/.exec(entry.trim())?.[1] ?? 0));
  return `k${Math.max(...numbers) + 1}`;
}
