import { systemTimers } from "../model/timers.ts";
import { type KeyRotation, rotateKeys, type SealedCounts, sealedWithOthers } from "../store/key-rotation.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, type Terminal } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, type Options, yesOption } from "./options.ts";
import { confirmed } from "./terminal/confirm.ts";
import { Progress } from "./terminal/progress.ts";
import { throwIfStopped } from "./terminal/stopped.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  check: { type: "boolean", help: "say what is sealed with which key; changes nothing" },
  json: { type: "boolean", help: "print one JSON document: newest, sealed, left, needed, damaged, retired" },
  ...yesOption,
  ...databaseOptions,
} as const satisfies Options;

const summary = "seal everything that is secret in the database with the newest encryption key";

export const rotateKey: Command = {
  name: "rotate-key",
  summary,
  options,
  help: commandHelp({
    name: "rotate-key",
    summary,
    usage: [
      ["rotate-key", "seal everything anew and end the older keys"],
      ["rotate-key --check", "how much is left, and which keys are still needed"],
    ],
    options,
    notes: [
      "Beforehand: `hookwell keys generate` makes a key. Put it behind the old one in HOOKWELL_ENCRYPTION_KEYS and start every process with that; then put it in front and start every process again. So none meets a text that it cannot open. Then run this, with the same list. Afterwards the old key may be removed, in every process: the last line says so.",
      "What is sealed: signing secrets and custom headers, one text for each version of an endpoint, and kept answers of requests with an Idempotency-Key.",
      "It works in small steps beside whatever runs, and changes only how the texts are sealed. Broken off anywhere, by Ctrl-C or a crash, run it again: it goes on with what is left. Contents that no key opens are named; deliveries bound to them fail as `unreadable`, as before.",
      "At the end the database asks for the newest key only. A process that still seals with an older one is refused when it does so, and one that is started with only that does not start. Backups from before need the old key still.",
    ],
    exits: "1 with --check while something is left or an older key is needed",
  }),
  async run(args, terminal) {
    const { values: flags } = readArguments(args, options);
    return withHooks(terminal, flags, async ({ store }) => {
      const counts = await store.countSealed();
      if (flags.check) return check(terminal, counts, flags.json);
      if (!(await isMeant(terminal, counts, flags.yes))) return exitCode.failed;
      const progress = new Progress(terminal, "texts sealed anew");
      const result = await rotateKeys(store, {
        timers: systemTimers,
        onProgress: (done, total) => {
          throwIfStopped(terminal);
          if (total > 0) progress.update(done, total);
        },
      });
      progress.end();
      return done(terminal, result, await store.countSealed(), flags.json);
    });
  },
};

/** A key that no process has begun with yet: those that run now cannot read what it seals. */
async function isMeant(terminal: Terminal, counts: SealedCounts, yes: boolean | undefined): Promise<boolean> {
  if (counts.newest?.standing.kind !== "unknown" || sealedWithOthers(counts) === 0) return true;
  const { id } = counts.newest;
  terminal.note(
    `No process has used ${id} yet. Those that run without it stop sending, and keep what is pending, until they are started with it.`,
  );
  return confirmed(terminal, `Seal everything with ${id} now?`, yes);
}

function check(terminal: Terminal, counts: SealedCounts, json: boolean | undefined): number {
  const left = sealedWithOthers(counts);
  const needed = counts.newest?.others ?? [];
  if (json) printJson(terminal, toJson(counts));
  else {
    terminal.print(sealedText(counts));
    if (left > 0) terminal.print(`${left} left for \`hookwell rotate-key\`.`);
    else if (needed.length > 0)
      terminal.print(`Nothing is left; \`hookwell rotate-key\` ends ${needed.join(", ")}.`);
    else terminal.print("Nothing is left, and no older key is needed.");
  }
  return left > 0 || needed.length > 0 ? exitCode.failed : exitCode.ok;
}

function done(
  terminal: Terminal,
  { newest, resealed, damaged, retired }: KeyRotation,
  counts: SealedCounts,
  json: boolean | undefined,
): number {
  for (const name of damaged) terminal.note(`No key opens the ${name}: it was damaged before.`);
  if (json) {
    printJson(terminal, { ...toJson(counts), resealed, damaged, retired });
    return exitCode.ok;
  }
  if (newest === undefined) {
    terminal.print("This database has nothing sealed.");
    return exitCode.ok;
  }
  terminal.print(
    `${resealed} ${resealed === 1 ? "text was" : "texts were"} sealed anew. ${sealedText(counts)}`,
  );
  const ended = retired.length > 0 ? ` (${retired.join(", ")})` : "";
  terminal.print(
    `Only ${newest} is needed from now on: older keys${ended} may be removed from HOOKWELL_ENCRYPTION_KEYS, or from the key file of a SQLite database, in every process. Keep them with backups made before.`,
  );
  return exitCode.ok;
}

function sealedText({ byKey }: SealedCounts): string {
  const parts = [...byKey].sort().map(([key, count]) => `${count} with ${key || "no key"}`);
  return `Sealed texts: ${parts.join(", ") || "none"}.`;
}

function toJson(counts: SealedCounts) {
  return {
    newest: counts.newest?.id ?? null,
    sealed: Object.fromEntries(counts.byKey),
    left: sealedWithOthers(counts),
    needed: counts.newest ? [...counts.newest.others, counts.newest.id].sort() : [],
  };
}
