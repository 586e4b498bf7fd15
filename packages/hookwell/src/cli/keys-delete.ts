import { readArguments, someIds } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, jsonOption, type Options, yesOption } from "./options.ts";
import { confirmed } from "./terminal/confirm.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...yesOption, ...databaseOptions, ...jsonOption } as const satisfies Options;

const summary = "delete keys of the REST API: they stop working at once";

export const keysDelete: Command = {
  name: "keys delete",
  summary,
  options,
  help: commandHelp({
    name: "keys delete",
    summary,
    usage: [["keys delete <id>…"]],
    options,
    notes: [
      "The id is that of `hookwell keys` (key_…), not the key itself. At a terminal it asks first. While no admin key is left, the next start of `hookwell serve` makes and prints one.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const ids = someIds(positionals, "a key");
    // Not quoted: it may be the key of somebody else.
    if (ids.some((id) => id.startsWith("hwk_")))
      throw new UsageError("That is a key itself; give its id (key_…), which `hookwell keys` lists.");
    const these = ids.length === 1 ? `the key ${ids[0]}` : `these ${ids.length} keys`;
    if (!(await confirmed(terminal, `Delete ${these}?`, flags.yes))) return exitCode.failed;
    return withHooks(terminal, flags, (hooks) =>
      forEachId(terminal, ids, {
        json: flags.json,
        what: "keys",
        act: async (id) => {
          await hooks.keys.delete(id);
          return id;
        },
        toJson: (id) => ({ id }),
        toText: (id) => `${id} is deleted`,
      }),
    );
  },
};
