import { subscriptionToJson } from "../publish/api-json.ts";
import { readArguments, someIds } from "./arguments.ts";
import type { Command } from "./command.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { subscriptionState } from "./subscription-text.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...databaseOptions, ...jsonOption } as const satisfies Options;

/** A command that moves subscriptions to another state. */
function moving(verb: "pause" | "resume" | "disable" | "enable", summary: string, note: string): Command {
  const name = `subscriptions ${verb}`;
  return {
    name,
    summary,
    options,
    help: commandHelp({
      name,
      summary,
      usage: [[`${name} <id>…`]],
      options,
      notes: [note],
      exits: "1 also when one of several ids was refused; the others are done",
    }),
    async run(args, terminal) {
      const { values: flags, positionals } = readArguments(args, options);
      const ids = someIds(positionals, "a subscription");
      return withHooks(terminal, flags, (hooks) =>
        forEachId(terminal, ids, {
          json: flags.json,
          what: "subscriptions",
          act: (id) => hooks.subscriptions[verb](id),
          toJson: subscriptionToJson,
          toText: (record) => `${record.id} is ${subscriptionState(record)}`,
        }),
      );
    },
  };
}

export const subscriptionsPause = moving(
  "pause",
  "queue, but do not send",
  "Events go on being queued for it and wait; `hookwell subscriptions resume` sends them.",
);

export const subscriptionsResume = moving(
  "resume",
  "send again what a pause has held",
  "What was queued meanwhile is sent, under the bounds of the subscription.",
);

export const subscriptionsDisable = moving(
  "disable",
  "queue nothing new",
  "Events that happen while it is disabled are not queued for it. What is pending is held, and fails after 30 days.",
);

export const subscriptionsEnable = moving(
  "enable",
  "take a disabled one into use again",
  "What was pending is sent. What happened while it was disabled is not; a replay of `missing` sends it.",
);
