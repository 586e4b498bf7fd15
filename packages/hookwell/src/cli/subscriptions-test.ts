import { testSendToJson } from "../publish/api-json.ts";
import { oneId, readArguments } from "./arguments.ts";
import { type Command, exitCode } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, devOption, jsonOption, type Options } from "./options.ts";
import { printRecord } from "./terminal/table.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  type: {
    type: "string",
    value: "<type>",
    help: "send the example of this event type (--config). Absent = the first that fits, or hookwell.test",
  },
  ...devOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "send one signed example to the endpoint, now";

export const subscriptionsTest: Command = {
  name: "subscriptions test",
  summary,
  options,
  help: commandHelp({
    name: "subscriptions test",
    summary,
    usage: [["subscriptions test <id> [--type <type>]"]],
    options,
    notes: [
      "It goes out from this machine, with the header x-hookwell-test: true, and ends within 15 s. Nothing is stored, retried or counted, and a paused or disabled subscription is tested too. It needs the encryption key.",
    ],
    exits: "1 also when the endpoint did not answer 2xx",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = oneId(positionals, "a subscription");
    return withHooks(terminal, flags, async (hooks) => {
      const sent = await hooks.subscriptions.test(
        id,
        flags.type === undefined ? {} : { eventType: flags.type },
      );
      const { attempt } = sent;
      if (flags.json) printJson(terminal, testSendToJson(sent));
      else
        printRecord(terminal, [
          ["result", attempt.errorCode ?? "accepted"],
          ["status", attempt.statusCode],
          ["error", attempt.error],
          ["answer", attempt.excerpt],
          ["event type", sent.eventType],
          ["webhook-id", sent.eventId],
          ["took", `${Math.round(attempt.durationMs)} ms`],
        ]);
      return attempt.errorCode === undefined ? exitCode.ok : exitCode.failed;
    });
  },
};
