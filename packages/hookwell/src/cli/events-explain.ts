import { explanationToJson } from "../publish/api-json.ts";
import type { Explanation } from "../publish/surface.ts";
import { oneId, readArguments } from "./arguments.ts";
import { type Command, exitCode } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printList, readListFlags } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, pageOptions } from "./options.ts";
import type { Column } from "./terminal/table.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  project: { type: "string", value: "<id>", help: "the project of the event, where the id is in several" },
  subscription: { type: "string", value: "<id>", help: "only this subscription, deleted or not" },
  ...pageOptions,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "why each subscription got an event, or did not";

export const eventsExplain: Command = {
  name: "events explain",
  summary,
  options,
  help: commandHelp({
    name: "events explain",
    summary,
    usage: [["events explain <event id> [--subscription <id>]"]],
    options,
    notes: [
      "For each subscription of the event's project, the newest first: its delivery, or the first rule of matching that kept it off. Subscriptions are looked at as they are now.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = oneId(positionals, "an event");
    readListFlags(flags);
    return withHooks(terminal, flags, async (hooks) => {
      await printList(terminal, flags, {
        fetch: (page) =>
          hooks.events.explain(id, {
            ...page,
            visibility: { projectId: flags.project },
            ...(flags.subscription !== undefined && { subscriptionId: flags.subscription }),
          }),
        toJson: explanationToJson,
        columns,
        none: "The project has no subscription.",
      });
      return exitCode.ok;
    });
  },
};

const columns: readonly Column<Explanation>[] = [
  { name: "SUBSCRIPTION", value: ({ subscriptionId }) => subscriptionId },
  { name: "GOT IT", value: ({ matched, rule }) => (matched ? "yes" : `no (${rule})`) },
  { name: "WHY", value: ({ detail }) => detail },
  { name: "DELIVERY", value: ({ delivery }) => delivery && `${delivery.id} (${delivery.status})` },
];
