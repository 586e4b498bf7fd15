import { eventToJson } from "../publish/api-json.ts";
import { readArguments, someIds } from "./arguments.ts";
import type { Command } from "./command.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  project: { type: "string", value: "<id>", help: "the project of the events, where an id is in several" },
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "send parked events through dispatch again";

export const eventsRelease: Command = {
  name: "events release",
  summary,
  options,
  help: commandHelp({
    name: "events release",
    summary,
    usage: [["events release <id>…"]],
    options,
    notes: [
      "An event is parked after six tries to dispatch it, in half a minute; `hookwell events <id>` has the error. Mend that first. `hookwell release` is another thing: it ends a hold.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const ids = someIds(positionals, "an event");
    const visibility = { projectId: flags.project };
    return withHooks(terminal, flags, (hooks) =>
      forEachId(terminal, ids, {
        json: flags.json,
        what: "events",
        act: async (id) => {
          await hooks.events.release(id, { visibility });
          return hooks.events.get(id, visibility);
        },
        toJson: eventToJson,
        toText: ({ id }) => `${id} will be dispatched again`,
      }),
    );
  },
};
