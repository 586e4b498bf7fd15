import type { SubscriptionStatus } from "../model/states.ts";
import { subscriptionToJson } from "../publish/api-json.ts";
import { readArguments, readChoice } from "./arguments.ts";
import { type Command, exitCode } from "./command.ts";
import { commandHelp } from "./help.ts";
import { listOrOne } from "./list-or-one.ts";
import { printJson, printList, readListFlags } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, pageOptions, placeOptions } from "./options.ts";
import { printSubscription, subscriptionColumns } from "./subscription-text.ts";
import { withHooks } from "./with-hooks.ts";

const statuses = ["active", "paused", "disabled", "deleted"] as const satisfies readonly SubscriptionStatus[];

const options = {
  status: { type: "string", value: "<status>", help: `${statuses.join(", ")}. Absent = all but deleted` },
  ...placeOptions,
  owner: { type: "string", value: "<id>", help: "of this owner" },
  "url-host": { type: "string", value: "<host>", help: "at this host" },
  "external-id": { type: "string", value: "<id>", help: "with your own name for it" },
  ...pageOptions,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "list subscriptions, or show one";
const verbs = ["create", "update", "pause", "resume", "disable", "enable", "delete", "rotate-secret", "test"];

export const subscriptions: Command = {
  name: "subscriptions",
  summary,
  options,
  help: commandHelp({
    name: "subscriptions",
    summary,
    usage: [
      ["subscriptions [filters]", "newest first"],
      ["subscriptions <id>", "one"],
    ],
    options,
    notes: [
      "Other commands begin with the same word: hookwell subscriptions create, update, pause, resume, disable, enable, rotate-secret, test, delete. Signing secrets are shown when they are made and never again.",
      "States: active; paused (queues, does not send); disabled by hand, as failing or as gone (queues nothing new); deleted.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = listOrOne(positionals, flags, "a subscription", verbs);
    readListFlags(flags);
    const status = readChoice(flags.status, "--status", statuses);
    return withHooks(terminal, flags, async (hooks) => {
      if (id === undefined) {
        const filter = {
          status,
          projectId: flags.project,
          tenantId: flags.tenant,
          ownerId: flags.owner,
          urlHost: flags["url-host"]?.toLowerCase(),
          externalId: flags["external-id"],
        };
        await printList(terminal, flags, {
          fetch: (page) => hooks.subscriptions.list(filter, page),
          toJson: subscriptionToJson,
          columns: subscriptionColumns,
          none: "No subscription matches.",
        });
        return exitCode.ok;
      }
      const record = await hooks.subscriptions.get(id);
      if (flags.json) printJson(terminal, subscriptionToJson(record));
      else printSubscription(terminal, record);
      return exitCode.ok;
    });
  },
};
