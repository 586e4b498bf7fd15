import { subscriptionToJson } from "../publish/api-json.ts";
import { readArguments, readChoice } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, devOption, jsonOption, type Options } from "./options.ts";
import { readSecret } from "./read-text.ts";
import {
  readHeaders,
  readMaxInFlight,
  readMetadata,
  readRateLimit,
  subscriptionOptions,
} from "./subscription-flags.ts";
import { printSubscription } from "./subscription-text.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  url: { type: "string", value: "<url>", help: "where the webhooks go: https, a public address" },
  project: { type: "string", value: "<id>", help: "needed, unless --config has a default" },
  tenant: { type: "string", value: "<id>", help: "it gets events of this tenant only" },
  owner: { type: "string", value: "<id>", help: "it gets events whose audience has this owner only" },
  ...subscriptionOptions,
  "secret-file": {
    type: "string",
    value: "<file>",
    help: "signing secret of your own; - is standard input. Absent = made, and printed this once",
  },
  ...devOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "subscribe an endpoint to events";

export const subscriptionsCreate: Command = {
  name: "subscriptions create",
  summary,
  options,
  help: commandHelp({
    name: "subscriptions create",
    summary,
    usage: [["subscriptions create --project <id> --url <url> [--type <type>]…"]],
    options,
    notes: [
      "The signing secret is printed once, here. Give it to the receiver; `hookwell listen --secret` verifies with it on your machine. Addresses that are not public are refused: HOOKWELL_ALLOW_NETWORKS opens a network, --dev this machine; the process that sends must be told the same.",
      "  hookwell subscriptions create --dev --project live --url http://127.0.0.1:8790/ --type 'user.*'",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    if (positionals.length > 0)
      throw new UsageError(`${JSON.stringify(positionals[0])} is too much; did you mean --url?`);
    const { url } = flags;
    if (url === undefined) throw new UsageError("--url is missing.");
    const secretFile = flags["secret-file"];
    if (secretFile === "-" && flags["headers-file"] === "-")
      throw new UsageError("Only one of --secret-file and --headers-file can be standard input.");
    const input = {
      url,
      projectId: flags.project,
      tenantId: flags.tenant,
      ownerId: flags.owner,
      eventTypes: flags.type,
      fields: flags.field,
      headers: await readHeaders(terminal, flags),
      description: flags.description || undefined,
      metadata: readMetadata(flags.metadata),
      externalId: flags["external-id"] || undefined,
      rateLimit: readRateLimit(flags["rate-limit"]),
      maxInFlight: readMaxInFlight(flags["max-in-flight"]),
      ordering: readChoice(flags.ordering, "--ordering", ["none", "subject"]),
      secret: secretFile === undefined ? undefined : await readSecret(terminal, secretFile),
    };
    return withHooks(terminal, flags, async (hooks) => {
      if (input.projectId === undefined && hooks.project === undefined)
        throw new UsageError("--project is needed: the instance has no default.");
      const created = await hooks.subscriptions.create(input);
      const shown = secretFile === undefined;
      if (flags.json)
        printJson(terminal, { ...subscriptionToJson(created), ...(shown && { secret: created.secret }) });
      else {
        printSubscription(terminal, created, shown ? [["secret", created.secret]] : []);
        if (shown) terminal.note("The secret is shown this once.");
      }
      return exitCode.ok;
    });
  },
};
