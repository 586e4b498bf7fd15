import { describeHold, describeSelector } from "../model/hold.ts";
import { holdToJson } from "../publish/api-json.ts";
import type { HookwellCore } from "../publish/surface.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, type Terminal } from "./command.ts";
import { commandHelp } from "./help.ts";
import { readSelector, selectorOptions } from "./hold-selector.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { printableLine } from "./terminal/printable.ts";
import { Progress } from "./terminal/progress.ts";
import { StoppedError } from "./terminal/stopped.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...selectorOptions, ...databaseOptions, ...jsonOption } as const satisfies Options;
const summary = "send again what `hookwell hold` held";
const mostCounted = 1_000_000_000;

export const release: Command = {
  name: "release",
  summary,
  options,
  help: commandHelp({
    name: "release",
    summary,
    usage: [["release --all | --project <id> | --type <type>"]],
    options,
    notes: [
      "It ends the hold that was made with the same words: --all ends `hold --all`, and leaves a hold of a project or a type as it is. What another hold covers stays held until that is released too; what is still held is said.",
      "Held deliveries that stood in the way of others were set aside. They are made due again in batches, with progress on standard error. Interrupt it as you like: the hold is over, and running workers, or the same command again, go on with it.",
    ],
    exits: "Releasing what is not held changes nothing, says so, and answers 0.",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const selector = readSelector(flags, positionals, "release");
    return withHooks(terminal, flags, async (hooks) => {
      const released = await hooks.holds.release(selector, { patienceMs: 0 });
      const words = released
        ? `Released: ${describeSelector(selector)}.`
        : `Not held: ${describeSelector(selector)}. Nothing changed.`;
      if (!flags.json) terminal.print(words);
      // Also when there was nothing to release: an earlier one may have been interrupted.
      const returned = await giveBack(hooks, terminal);
      const left = await hooks.holds.list();
      if (flags.json)
        printJson(terminal, {
          released: released ? holdToJson(released.hold) : null,
          given_back: returned,
          still_held: left.map(holdToJson),
        });
      else for (const record of left) terminal.print(`Still held: ${printableLine(describeHold(record))}.`);
      return exitCode.ok;
    });
  },
};

/** @throws StoppedError */
async function giveBack({ holds, store }: HookwellCore, terminal: Terminal): Promise<number> {
  const total = await store.countToGiveBack(mostCounted);
  const progress = new Progress(terminal, "deliveries that were set aside are due again");
  const { deliveries } = await holds.giveBack({
    onBatch(done) {
      progress.update(done, Math.max(done, total));
      if (terminal.stopped?.aborted)
        throw new StoppedError(
          `interrupted after ${done} of ${total} deliveries were due again; workers go on.`,
        );
    },
  });
  progress.end();
  return deliveries;
}
