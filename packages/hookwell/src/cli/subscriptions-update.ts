import { subscriptionToJson } from "../publish/api-json.ts";
import type { SubscriptionChanges } from "../publish/surface.ts";
import { oneId, readArguments, readChoice } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, devOption, jsonOption, type Options } from "./options.ts";
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
  url: { type: "string", value: "<url>", help: "where the webhooks go, those that are queued as well" },
  ...subscriptionOptions,
  "all-types": { type: "boolean", help: "send every type" },
  "default-fields": { type: "boolean", help: "send the default fields of each type" },
  "no-headers": { type: "boolean", help: "send no custom headers" },
  "no-rate-limit": { type: "boolean", help: "without a rate limit" },
  "no-max-in-flight": { type: "boolean", help: "without a bound of its own" },
  ...devOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "change a subscription";

export const subscriptionsUpdate: Command = {
  name: "subscriptions update",
  summary,
  options,
  help: commandHelp({
    name: "subscriptions update",
    summary,
    usage: [["subscriptions update <id> [options]"]],
    options,
    notes: [
      "What is not named stays. --type, --field and --header replace the whole list. --metadata changes the entries that it names; `name=` without a value removes one. An empty --description or --external-id removes it. A new url or new headers hold for what is queued already: its bodies and ids stay.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = oneId(positionals, "a subscription");
    const metadata = readMetadata(flags.metadata);
    const changes: SubscriptionChanges = {
      url: flags.url,
      eventTypes: either(flags.type, flags["all-types"], "type", "all-types", []),
      fields: either(flags.field, flags["default-fields"], "field", "default-fields", null),
      headers: either(await readHeaders(terminal, flags), flags["no-headers"], "header", "no-headers", null),
      description: flags.description === "" ? null : flags.description,
      externalId: flags["external-id"] === "" ? null : flags["external-id"],
      rateLimit: either(
        readRateLimit(flags["rate-limit"]),
        flags["no-rate-limit"],
        "rate-limit",
        "no-rate-limit",
        null,
      ),
      maxInFlight: either(
        readMaxInFlight(flags["max-in-flight"]),
        flags["no-max-in-flight"],
        "max-in-flight",
        "no-max-in-flight",
        null,
      ),
      ordering: readChoice(flags.ordering, "--ordering", ["none", "subject"]),
    };
    if (metadata === undefined && Object.values(changes).every((value) => value === undefined))
      throw new UsageError("Nothing to change is given.");
    return withHooks(terminal, flags, async (hooks) => {
      const updated = await hooks.subscriptions.update(id, {
        ...changes,
        ...(metadata && { merge: { metadata: emptyRemoved(metadata) } }),
      });
      if (flags.json) printJson(terminal, subscriptionToJson(updated));
      else printSubscription(terminal, updated);
      return exitCode.ok;
    });
  },
};

/** A value, or what removes it; undefined = leave it. @throws UsageError when both are asked for */
function either<T, None>(
  value: T | undefined,
  none: boolean | undefined,
  option: string,
  noneOption: string,
  removed: None,
): T | None | undefined {
  if (value !== undefined && none) throw new UsageError(`Give --${option} or --${noneOption}, not both.`);
  return none ? removed : value;
}

/** `name=` takes an entry away. */
function emptyRemoved(metadata: Readonly<Record<string, string>>): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, value === "" ? null : value]),
  );
}
