import { readArguments, someIds } from "./arguments.ts";
import { type Command, exitCode } from "./command.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, jsonOption, type Options, yesOption } from "./options.ts";
import { confirmed } from "./terminal/confirm.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...yesOption, ...databaseOptions, ...jsonOption } as const satisfies Options;

const summary = "delete subscriptions for good";

export const subscriptionsDelete: Command = {
  name: "subscriptions delete",
  summary,
  options,
  help: commandHelp({
    name: "subscriptions delete",
    summary,
    usage: [["subscriptions delete <id>…"]],
    options,
    notes: [
      "What is pending for it is cancelled, by the next upkeep of a worker. What was delivered stays in the list until retention. At a terminal it asks first.",
    ],
    exits: "1 also when one of several ids was refused; the others are done",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const ids = someIds(positionals, "a subscription");
    const these = ids.length === 1 ? ids[0] : `these ${ids.length} subscriptions`;
    if (!(await confirmed(terminal, `Delete ${these}, and cancel what is pending?`, flags.yes)))
      return exitCode.failed;
    return withHooks(terminal, flags, (hooks) =>
      forEachId(terminal, ids, {
        json: flags.json,
        what: "subscriptions",
        act: async (id) => {
          await hooks.subscriptions.delete(id);
          return id;
        },
        toJson: (id) => ({ id }),
        toText: (id) => `${id} is deleted`,
      }),
    );
  },
};
