import type { ReplayStatus } from "../model/states.ts";
import { replayToJson } from "../publish/api-json.ts";
import { readArguments, readChoice } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printList, readListFlags } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, pageOptions, placeOptions } from "./options.ts";
import { replayColumns } from "./replay-text.ts";
import { withHooks } from "./with-hooks.ts";

const statuses = ["running", "done", "stopped", "failed"] as const satisfies readonly ReplayStatus[];

const options = {
  status: { type: "string", value: "<status>", help: statuses.join(", ") },
  subscription: { type: "string", value: "<id>", help: "to this subscription" },
  ...placeOptions,
  ...pageOptions,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "list replays";

export const replayList: Command = {
  name: "replay list",
  summary,
  options,
  help: commandHelp({
    name: "replay list",
    summary,
    usage: [["replay list [filters]", "newest first"]],
    options,
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    if (positionals.length > 0) throw new UsageError(`${JSON.stringify(positionals[0])} is too much.`);
    readListFlags(flags);
    const filter = {
      status: readChoice(flags.status, "--status", statuses),
      subscriptionId: flags.subscription,
      projectId: flags.project,
      tenantId: flags.tenant,
    };
    return withHooks(terminal, flags, async (hooks) => {
      await printList(terminal, flags, {
        fetch: (page) => hooks.replays.list(filter, page),
        toJson: replayToJson,
        columns: replayColumns,
        none: "No replay matches.",
      });
      return exitCode.ok;
    });
  },
};
