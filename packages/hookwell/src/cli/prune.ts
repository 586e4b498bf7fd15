import type { HookwellCore, UpkeepResult } from "../publish/surface.ts";
import { readArguments, readWhole } from "./arguments.ts";
import { type Command, exitCode, type Terminal, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, yesOption } from "./options.ts";
import { confirmed } from "./terminal/confirm.ts";
import { Progress } from "./terminal/progress.ts";
import { pause, StoppedError } from "./terminal/stopped.ts";
import { printRecord } from "./terminal/table.ts";
import { shortTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  "dry-run": { type: "boolean", help: "only say what is old enough; it does not count it" },
  batch: {
    type: "string",
    value: "<n>",
    help: "rows in each short transaction, at most 10000; default 1000",
  },
  ...yesOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "delete what is older than its retention, now";
/** Between batches others get the write lock. */
const breathMs = 20;

export const prune: Command = {
  name: "prune",
  summary,
  options,
  help: commandHelp({
    name: "prune",
    summary,
    usage: [["prune [--dry-run]"]],
    options,
    notes: [
      "Every worker does this by itself, a batch each minute; the command is for a backlog of it, or for a database without a worker. It deletes delivered and cancelled deliveries (30 days after their end), failed ones (90), and events (30 days after capture, and with their last delivery). With --config the module's own `retention` holds: give it when it has one. It also cancels what waits for deleted subscriptions, and fails what disabled ones have held for 30 days.",
      "It works in short transactions beside everything else and may be interrupted and run again. At a terminal it asks first.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    if (positionals.length > 0) throw new UsageError(`${JSON.stringify(positionals[0])} is too much.`);
    const limit = readWhole(flags.batch, "--batch", 1) ?? 1_000;
    if (limit > 10_000) throw new UsageError("--batch must be at most 10000.");
    return withHooks(terminal, flags, async (hooks) => {
      const before = timesBefore(hooks);
      if (!before && !flags.json) terminal.note("Retention is off here, so nothing is deleted.");
      if (flags["dry-run"]) {
        if (flags.json) printJson(terminal, { before });
        else if (before) printRecord(terminal, inWords(before));
        return exitCode.ok;
      }
      const question = before
        ? `Delete events captured before ${before.events} and deliveries ended before ${before.delivered} (failed: ${before.failed})?`
        : "Cancel and fail what waits for deleted and disabled subscriptions?";
      if (!(await confirmed(terminal, question, flags.yes))) return exitCode.failed;
      const total = await pruneAll(terminal, hooks, limit);
      if (flags.json) printJson(terminal, total);
      else
        printRecord(terminal, [
          ["deleted", `${total.pruned_deliveries} deliveries, ${total.pruned_events} events`],
          ["cancelled", `${total.cancelled} deliveries`],
          ["failed", `${total.failed} deliveries`],
        ]);
      return exitCode.ok;
    });
  },
};

interface TimesBefore {
  readonly delivered: string;
  readonly failed: string;
  readonly events: string;
}

function timesBefore({ retention, clock }: HookwellCore): TimesBefore | null {
  if (!retention) return null;
  const ago = (ms: number): string => shortTime(new Date(clock().getTime() - ms))!;
  return {
    delivered: ago(retention.deliveredMs),
    failed: ago(retention.failedMs),
    events: ago(retention.eventsMs),
  };
}

function inWords({ delivered, failed, events }: TimesBefore): [string, string][] {
  return [
    ["deliveries", `delivered or cancelled before ${delivered}`],
    ["", `failed before ${failed}`],
    ["events", `captured before ${events}, with no delivery left`],
  ];
}

async function pruneAll(terminal: Terminal, hooks: HookwellCore, limit: number) {
  const total = { pruned_deliveries: 0, pruned_events: 0, cancelled: 0, failed: 0 };
  const progress = new Progress(terminal, "rows dealt with");
  let done: UpkeepResult;
  do {
    if (terminal.stopped?.aborted)
      throw new StoppedError(
        `interrupted after ${total.pruned_deliveries} deliveries and ${total.pruned_events} events were deleted.`,
      );
    done = await hooks.maintain({ limit });
    total.pruned_deliveries += done.prunedDeliveries;
    total.pruned_events += done.prunedEvents;
    total.cancelled += done.cancelled;
    total.failed += done.failed;
    progress.update(Object.values(total).reduce((sum, count) => sum + count, 0));
    if (done.more) await pause(terminal, breathMs);
  } while (done.more);
  progress.end();
  return total;
}
