import type { ReplayedStatus, ReplayRecord } from "../model/replay.ts";
import { replayToJson } from "../publish/api-json.ts";
import type { HookwellCore, ReplayInput } from "../publish/surface.ts";
import { readArguments, readChoice } from "./arguments.ts";
import { type Command, exitCode, type Terminal, UsageError } from "./command.ts";
import { deliveryFilterOptions, readDeliveryFilter } from "./delivery-filter.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, yesOption } from "./options.ts";
import { printReplay } from "./replay-text.ts";
import { nearest } from "./suggest.ts";
import { confirmed } from "./terminal/confirm.ts";
import { Progress } from "./terminal/progress.ts";
import { pause, StoppedError } from "./terminal/stopped.ts";
import { withHooks } from "./with-hooks.ts";

const replayed = ["failed", "delivered", "cancelled", "missing"] as const satisfies readonly ReplayedStatus[];
const longestLookMs = 500;
/** A replay that nobody takes on for so many looks, about ten seconds. */
const looksThatWonder = 25;

const options = {
  status: {
    type: "string",
    multiple: true,
    value: "<status>",
    help: "what became of those to send again: failed (default), delivered, cancelled; or missing: events that match the subscription now and were never queued for it",
  },
  ...deliveryFilterOptions,
  owner: { type: "string", value: "<id>", help: "to subscriptions of this owner" },
  "dry-run": { type: "boolean", help: "count, and send nothing" },
  detach: { type: "boolean", help: "do not wait until all is queued" },
  ...yesOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "send many deliveries again, as a job";

export const replay: Command = {
  name: "replay",
  summary,
  options,
  help: commandHelp({
    name: "replay",
    summary,
    usage: [
      ["replay --since <time> <filters> --dry-run", "how many it would be"],
      ["replay --since <time> <filters>", "queue them, and wait until that is done"],
      ["replay list | replay show <id> | replay stop <id>"],
    ],
    options,
    notes: [
      "At least one filter and --since are needed. --since and --until are about when the deliveries were made (missing: when the events were captured), and reach back as far as retention. Each delivery is queued once more, with the same ids and bytes, behind live traffic; at most 10,000 of a replay are pending at a time. What is pending is left alone.",
      "The job is in the database: any process with a dispatcher or worker goes on with it after a crash, and Ctrl-C here does not stop it (`hookwell replay stop` does). At a terminal it counts and asks first.",
      "  hookwell replay --subscription sub_… --since 2026-01-31T08:00:00Z --until 2026-01-31T09:30:00Z\n  hookwell replay --subscription sub_… --since 7d --status missing",
    ],
    exits: "1 also when the replay was stopped or failed; deliveries that fail again do not count",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const [word] = positionals;
    if (word !== undefined) {
      const near = nearest(word, ["list", "show", "stop"]);
      throw new UsageError(
        `${JSON.stringify(word)} is too much.${near ? ` Did you mean \`hookwell replay ${near}\`?` : " `hookwell replay show <id>` shows one."}`,
      );
    }
    const status = (flags.status ?? ["failed"])
      .flatMap((entry) => entry.split(","))
      .map((entry) => readChoice(entry, "--status", replayed)!);
    return withHooks(terminal, flags, async (hooks) => {
      const {
        status: _,
        since,
        until,
        ...filter
      } = readDeliveryFilter({ ...flags, status: undefined }, hooks.clock());
      if (since === undefined) throw new UsageError("--since is missing: from when on?");
      const input: ReplayInput = {
        filter: { ...filter, ownerId: flags.owner },
        since,
        status,
        ...(until && { until }),
      };
      if (Object.values(input.filter!).every((value) => value === undefined))
        throw new UsageError("Say which: a filter such as --subscription, --type, --url-host or --project.");
      return replayChosen(terminal, hooks, input, flags);
    });
  },
};

async function replayChosen(
  terminal: Terminal,
  hooks: HookwellCore,
  input: ReplayInput,
  flags: {
    readonly "dry-run"?: boolean;
    readonly detach?: boolean;
    readonly yes?: boolean;
    readonly json?: boolean;
  },
): Promise<number> {
  const ask = terminal.ask !== undefined && !flags.yes;
  if (flags["dry-run"] || ask) {
    const { count } = await hooks.replays.count(input);
    if (flags["dry-run"] || count === 0) {
      if (flags.json) printJson(terminal, { count });
      else terminal.print(`${count} deliveries would be sent again`);
      return exitCode.ok;
    }
    if (!(await confirmed(terminal, `Send ${count} deliveries again?`, false))) return exitCode.failed;
  }
  const made = await hooks.replays.create(input);
  if (!flags.json) terminal.note(`Replay ${made.id} of ${made.count} deliveries is made.`);
  const replay = flags.detach ? made : await untilQueued(terminal, hooks, made);
  if (flags.json) printJson(terminal, replayToJson(replay));
  else if (flags.detach) terminal.print(replay.id);
  else printReplay(terminal, replay);
  return replay.status === "stopped" || replay.status === "failed" ? exitCode.failed : exitCode.ok;
}

/** Watches the replay until everything is queued. @throws StoppedError: the replay goes on without the watcher */
async function untilQueued(
  terminal: Terminal,
  hooks: HookwellCore,
  made: ReplayRecord,
): Promise<ReplayRecord> {
  const progress = new Progress(terminal, "deliveries queued");
  let replay = made;
  for (let look = 1; replay.status === "running"; look++) {
    await pause(terminal, Math.min(50 * look, longestLookMs));
    if (terminal.stopped?.aborted)
      throw new StoppedError(
        `you stopped watching; the replay goes on. See \`hookwell replay show ${made.id}\`, or end it with \`hookwell replay stop ${made.id}\`.`,
      );
    replay = await hooks.replays.get(made.id);
    progress.update(replay.queued + replay.skipped, Math.max(replay.count, replay.queued + replay.skipped));
    if (look === looksThatWonder && replay.status === "running" && replay.queued + replay.skipped === 0)
      terminal.note(
        "Nothing is queued yet. Does a process with a dispatcher or worker run on this database?",
      );
  }
  progress.end();
  return replay;
}
