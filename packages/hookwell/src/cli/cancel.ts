import { deliveryToJson } from "../publish/api-json.ts";
import { readArguments, someIds } from "./arguments.ts";
import type { Command } from "./command.ts";
import { deliveryState } from "./delivery-columns.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...databaseOptions, ...jsonOption } as const satisfies Options;

const summary = "cancel pending deliveries";

export const cancel: Command = {
  name: "cancel",
  summary,
  options,
  help: commandHelp({
    name: "cancel",
    summary,
    usage: [["cancel <delivery id>…"]],
    options,
    notes: [
      "A cancelled delivery is not sent again; the outcome of a send in flight is ignored. `hookwell retry` takes it up again.",
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
        act: (id) => hooks.deliveries.cancel(id),
        toJson: deliveryToJson,
        toText: (delivery) => `${delivery.id} is ${deliveryState(delivery)}`,
      }),
    );
  },
};
