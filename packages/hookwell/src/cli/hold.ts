import { describeHold, describeSelector, type HoldRecord } from "../model/hold.ts";
import { holdToJson } from "../publish/api-json.ts";
import type { HookwellCore } from "../publish/surface.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, type Terminal, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { readSelector, selectorOptions, typedSelector } from "./hold-selector.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { printableLine } from "./terminal/printable.ts";
import { type Column, Table } from "./terminal/table.ts";
import { shortTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  ...selectorOptions,
  list: { type: "boolean", help: "show what is held, since when, by whom and why" },
  reason: { type: "string", value: "<text>", help: "why, for whoever finds it" },
  by: { type: "string", value: "<name>", help: "who holds it; default: USER" },
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "send nothing, nothing of a project, or nothing of a type, for now";

export const hold: Command = {
  name: "hold",
  summary,
  options,
  help: commandHelp({
    name: "hold",
    summary,
    usage: [
      ["hold --all [--reason <text>]", "everything"],
      ["hold --project <id>", "one project"],
      ["hold --type <type>", "an event type, or a family of them"],
      ["hold --list", "what is held"],
    ],
    options,
    notes: [
      "While something is held, events are captured and dispatched as always (their bodies are frozen, and a subscription that is made later does not get them), and nothing that the hold covers is sent, by any process. A send in flight is finished. It is a row in the database: it takes effect with the next claim, everywhere, and survives restarts.",
      "Other deliveries flow, those of the same subscription too; in a subscription with ordering `subject`, what comes after a held one of its subject waits behind it. What two holds cover is sent when both are released (`hookwell release`). A held delivery says so in `hold`, costs no attempt, and is not late for /healthz/delivery, which tells how many holds there are. To stop one receiver, pause its subscription.",
    ],
    exits: "Holding what is held already changes nothing, says so, and answers 0.",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    if (flags.list) {
      if (flags.all || flags.project !== undefined || flags.type !== undefined || positionals.length > 0)
        throw new UsageError("--list shows every hold; give it alone.");
      return withHooks(terminal, flags, (hooks) => list(hooks, flags.json ?? false, terminal));
    }
    const selector = readSelector(flags, positionals, "hold");
    const { USER, LOGNAME, USERNAME } = terminal.environment;
    const heldBy = flags.by ?? (USER || LOGNAME || USERNAME);
    const given = {
      ...(flags.reason !== undefined && { reason: flags.reason }),
      ...(heldBy && { heldBy }),
    };
    return withHooks(terminal, flags, async (hooks) => {
      const { hold: record, created } = await hooks.holds.set(selector, given);
      if (flags.json) printJson(terminal, { created, hold: holdToJson(record) });
      else if (!created)
        terminal.print(`Already held: ${printableLine(describeHold(record))}. Nothing changed.`);
      else
        terminal.print(
          `Held: ${describeSelector(selector)}. Events are captured; nothing of it is sent until \`hookwell release ${typedSelector(selector)}\`.`,
        );
      return exitCode.ok;
    });
  },
};

const columns: readonly Column<HoldRecord>[] = [
  { name: "HELD", value: ({ selector }) => describeSelector(selector) },
  { name: "SINCE", value: ({ createdAt }) => shortTime(createdAt) },
  { name: "BY", value: ({ heldBy }) => heldBy },
  { name: "REASON", value: ({ reason }) => reason },
  { name: "ID", value: ({ id }) => id },
];

async function list({ holds }: HookwellCore, json: boolean, terminal: Terminal): Promise<number> {
  const records = (await holds.list()).reverse();
  if (json) printJson(terminal, { items: records.map(holdToJson), next_cursor: null });
  else if (records.length === 0) terminal.note("Nothing is held.");
  else new Table(terminal, columns).print(records);
  return exitCode.ok;
}
