import { deliveryToJson } from "../publish/api-json.ts";
import type { CancelFilter, HookwellCore } from "../publish/surface.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, type Terminal, UsageError } from "./command.ts";
import { deliveryState } from "./delivery-columns.ts";
import { deliveryFilterOptions, readDeliveryFilter } from "./delivery-filter.ts";
import { forEachId } from "./each-id.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, yesOption } from "./options.ts";
import { confirmed } from "./terminal/confirm.ts";
import { Progress } from "./terminal/progress.ts";
import { StoppedError } from "./terminal/stopped.ts";
import { withHooks } from "./with-hooks.ts";

const filterOptions = {
  ...deliveryFilterOptions,
  owner: { type: "string", value: "<id>", help: "to subscriptions of this owner" },
  replay: { type: "string", value: "<id>", help: "that this replay has queued" },
} as const satisfies Options;

const options = {
  ...filterOptions,
  "dry-run": { type: "boolean", help: "count what the filters choose, and change nothing" },
  ...yesOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "cancel pending deliveries, by id or by what they have in common";

export const cancel: Command = {
  name: "cancel",
  summary,
  options,
  help: commandHelp({
    name: "cancel",
    summary,
    usage: [
      ["cancel <delivery id>…"],
      ["cancel <filters> --dry-run", "how many it would be"],
      ["cancel <filters>", "all of them, in short transactions"],
    ],
    options,
    notes: [
      "A cancelled delivery is not sent again; the outcome of a send in flight is ignored. `hookwell retry` and `hookwell replay --status cancelled` take it up again. All given filters must hold, and times are those of the making of a delivery. At a terminal it counts and asks first.",
      "  hookwell cancel --subscription sub_… --since 2h --dry-run",
    ],
    exits: "1 also when one of several ids was refused; the others are done",
  }),
  async run(args, terminal) {
    const { values: flags, positionals: ids } = readArguments(args, options);
    const chosen = Object.keys(filterOptions).filter((name) => name in flags);
    if (ids.length > 0 && (chosen.length > 0 || flags["dry-run"]))
      throw new UsageError(`Give ids or filters, not both: --${chosen[0] ?? "dry-run"} is for filters.`);
    if (ids.length === 0 && chosen.length === 0)
      throw new UsageError("Say which: ids of deliveries, or a filter such as --subscription or --type.");
    return withHooks(terminal, flags, async (hooks) => {
      if (ids.length > 0) return cancelEach(terminal, hooks, [...new Set(ids)], flags.json);
      const { status: _, ...filter } = readDeliveryFilter(flags, hooks.clock());
      return cancelChosen(
        terminal,
        hooks,
        { ...filter, ownerId: flags.owner, replayId: flags.replay },
        flags,
      );
    });
  },
};

function cancelEach(
  terminal: Terminal,
  hooks: HookwellCore,
  ids: readonly string[],
  json: boolean | undefined,
): Promise<number> {
  return forEachId(terminal, ids, {
    json,
    what: "deliveries",
    act: (id) => hooks.deliveries.cancel(id),
    toJson: deliveryToJson,
    toText: (delivery) => `${delivery.id} is ${deliveryState(delivery)}`,
  });
}

async function cancelChosen(
  terminal: Terminal,
  hooks: HookwellCore,
  filter: CancelFilter,
  flags: { readonly "dry-run"?: boolean; readonly yes?: boolean; readonly json?: boolean },
): Promise<number> {
  const run = async (dryRun: boolean): Promise<number> => {
    const progress = new Progress(terminal, dryRun ? "deliveries counted" : "deliveries cancelled");
    const { stopped } = terminal;
    const { count } = await hooks.deliveries.cancelMany(filter, {
      dryRun,
      onProgress: (soFar) => progress.update(soFar),
      ...(stopped && { signal: stopped }),
    });
    progress.end();
    if (stopped?.aborted)
      throw new StoppedError(
        dryRun ? "interrupted." : `interrupted after ${count} deliveries were cancelled.`,
      );
    return count;
  };
  const say = (count: number, text: string): number => {
    if (flags.json) printJson(terminal, { count });
    else terminal.print(text);
    return exitCode.ok;
  };
  if (flags["dry-run"]) {
    const count = await run(true);
    return say(count, `${count} pending deliveries would be cancelled`);
  }
  if (terminal.ask && !flags.yes) {
    const count = await run(true);
    if (count === 0) return say(0, "No pending delivery matches.");
    if (!(await confirmed(terminal, `Cancel ${count} pending deliveries?`, false))) return exitCode.failed;
  }
  const count = await run(false);
  return say(count, `${count} deliveries are cancelled`);
}
