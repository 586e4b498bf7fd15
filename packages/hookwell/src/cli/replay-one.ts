import type { ReplayRecord } from "../model/replay.ts";
import { replayToJson } from "../publish/api-json.ts";
import type { HookwellCore } from "../publish/surface.ts";
import { oneId, readArguments } from "./arguments.ts";
import { type Command, exitCode } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { printReplay } from "./replay-text.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...databaseOptions, ...jsonOption } as const satisfies Options;

/** A command about one replay, which shows it afterwards. */
function about(
  verb: string,
  summary: string,
  note: string,
  act: (hooks: HookwellCore, id: string) => Promise<ReplayRecord>,
): Command {
  const name = `replay ${verb}`;
  return {
    name,
    summary,
    options,
    help: commandHelp({ name, summary, usage: [[`${name} <id>`]], options, notes: [note] }),
    async run(args, terminal) {
      const { values: flags, positionals } = readArguments(args, options);
      const id = oneId(positionals, "a replay");
      return withHooks(terminal, flags, async (hooks) => {
        const replay = await act(hooks, id);
        if (flags.json) printJson(terminal, replayToJson(replay));
        else printReplay(terminal, replay);
        return exitCode.ok;
      });
    },
  };
}

export const replayShow = about(
  "show",
  "how far a replay is, and what became of it",
  "`done` means that everything is queued; what is still on its way is told apart.",
  (hooks, id) => hooks.replays.get(id),
);

export const replayStop = about(
  "stop",
  "let a replay queue nothing more",
  "What it has queued goes out; `hookwell cancel --replay <id>` cancels that.",
  (hooks, id) => hooks.replays.cancel(id),
);
