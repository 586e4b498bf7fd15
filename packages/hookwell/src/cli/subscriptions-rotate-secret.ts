import { parseDuration } from "../model/duration.ts";
import { oneId, readArguments } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, yesOption } from "./options.ts";
import { readSecret } from "./read-text.ts";
import { confirmed } from "./terminal/confirm.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  overlap: {
    type: "string",
    value: "<time>",
    help: "how long the older secrets stay valid: 24h (default), at most 30d; 0s ends them now",
  },
  "secret-file": {
    type: "string",
    value: "<file>",
    help: "a secret of your own; - is standard input. Absent = made, and printed this once",
  },
  ...yesOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "give a subscription a new signing secret";

export const subscriptionsRotateSecret: Command = {
  name: "subscriptions rotate-secret",
  summary,
  options,
  help: commandHelp({
    name: "subscriptions rotate-secret",
    summary,
    usage: [["subscriptions rotate-secret <id> [--overlap <time>]"]],
    options,
    notes: [
      "From now on every attempt, those of pending deliveries too, carries one signature for each valid secret, so the receiver verifies with the old one or the new one. At most five are valid at once. --overlap 0s, for a secret that leaked, asks first at a terminal: a receiver that has the old one refuses what comes then.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = oneId(positionals, "a subscription");
    const overlapMs = readOverlap(flags.overlap);
    const given = flags["secret-file"];
    const secret = given === undefined ? undefined : await readSecret(terminal, given);
    if (overlapMs === 0 && !(await confirmed(terminal, `End the older secrets of ${id} now?`, flags.yes)))
      return exitCode.failed;
    return withHooks(terminal, flags, async (hooks) => {
      const rotated = await hooks.subscriptions.rotateSecret(id, {
        ...(overlapMs !== undefined && { overlapMs }),
        ...(secret !== undefined && { secret }),
      });
      const shown = given === undefined;
      if (flags.json) printJson(terminal, shown ? { secret: rotated.secret } : {});
      else {
        terminal.print(shown ? rotated.secret : id);
        terminal.note(shown ? "The new secret is shown this once." : "It signs with the given secret now.");
      }
      return exitCode.ok;
    });
  },
};

function readOverlap(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined) throw new UsageError("--overlap must be a time such as 24h, 30m or 0s.");
  return ms;
}
