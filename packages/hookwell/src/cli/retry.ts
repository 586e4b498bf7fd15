import { deliveryToJson } from "../publish/api-json.ts";
import { readArguments, someIds } from "./arguments.ts";
import type { Command } from "./command.ts";
import { deliveryState } from "./delivery-columns.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...databaseOptions, ...jsonOption } as const satisfies Options;

const summary = "send deliveries again, now";

export const retry: Command = {
  name: "retry",
  summary,
  options,
  help: commandHelp({
    name: "retry",
    summary,
    usage: [["retry <delivery id>…"]],
    options,
    notes: [
      "A delivery that was delivered, failed or cancelled opens a new round of attempts, with the same ids and bytes. A pending one is due now instead of later. One that is being sent at this moment is refused.",
      "A worker does the sending: `hookwell serve`, `hookwell worker`, or the application. For many at once, by what they have in common, see `hookwell replay`.",
      '  hookwell deliveries --status failed --error-code timeout --json | jq -r ".items[].id" | xargs hookwell retry',
    ],
    exits: "1 also when one of several ids was refused; the others are done",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const ids = someIds(positionals, "a delivery");
    return withHooks(terminal, flags, (hooks) =>
      forEachId(terminal, ids, {
        json: flags.json,
        what: "deliveries",
        act: (id) => hooks.deliveries.retry(id),
        toJson: deliveryToJson,
        toText: (delivery) => `${delivery.id} is ${deliveryState(delivery)}, due now`,
      }),
    );
  },
};
