import { readSettings } from "../model/settings.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, type Terminal, UsageError } from "./command.ts";
import type { Found } from "./doctor/report.ts";
import { commandHelp } from "./help.ts";
import { databaseOptions, devOption, jsonOption, type Options } from "./options.ts";
import { type OpenedHooks, withInstance } from "./with-hooks.ts";

const options = {
  url: {
    type: "string",
    multiple: true,
    value: "<url>",
    help: "try a connection to this instead of the subscriptions' hosts",
  },
  "no-egress": { type: "boolean", help: "try no connection" },
  ...devOption,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "find what is wrong, and say what to do";

export const doctor: Command = {
  name: "doctor",
  summary,
  options,
  help: commandHelp({
    name: "doctor",
    summary,
    usage: [["doctor"], ["doctor --url <url>", "can webhooks get there from this machine?"]],
    options,
    notes: [
      "It looks at the database and its schema, its clock beside this machine's, the encryption keys, files and settings of SQLite or connections of PostgreSQL, the oldest due delivery, events that nobody dispatches, parked events, endpoints in trouble, holds, and connections to the subscriptions' hosts (at most 20 hosts, look-up and TLS as for a send, no request). It changes nothing and puts no load on anything.",
      "Run it where the worker runs, with the worker's settings: egress, keys and clock are those of this machine. Give --config as the worker has it, or types that only the application knows are taken for lost.",
    ],
    exits: "1 also when a problem was found; notes do not count",
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    if (positionals.length > 0)
      throw new UsageError(`${JSON.stringify(positionals[0])} is too much; did you mean --url?`);
    if (flags["no-egress"] && flags.url) throw new UsageError("Give --url or --no-egress, not both.");
    const wrong = flags.url?.find((url) => !/^https?:\/\//.test(url) || !URL.canParse(url));
    if (wrong !== undefined) throw new UsageError("--url must be a url such as https://example.com/.");
    const { printFound, printReport } = await import("./doctor/report.ts");
    const found: Found[] = [];
    const say = (one: Found): void => {
      found.push(one);
      if (!flags.json) printFound(terminal, one);
    };
    await withInstance(terminal, flags, (opened) =>
      examine(terminal, opened, flags["no-egress"] ? undefined : (flags.url ?? []), say),
    );
    const problems = found.filter(({ level }) => level === "problem").length;
    if (flags.json) printReport(terminal, found);
    else
      terminal.note(problems === 0 ? "All is well." : `${problems} problem${problems > 1 ? "s" : ""} found.`);
    return problems === 0 ? exitCode.ok : exitCode.failed;
  },
};

/** `urls` undefined = no connection is tried; none = the subscriptions' hosts. */
async function examine(
  terminal: Terminal,
  { hooks, description }: OpenedHooks,
  urls: readonly string[] | undefined,
  say: (found: Found) => void,
): Promise<void> {
  const [{ checkDatabase }, { checkDelivery }, { checkEgress }] = await Promise.all([
    import("./doctor/database-checks.ts"),
    import("./doctor/delivery-checks.ts"),
    import("./doctor/egress-checks.ts"),
  ]);
  const inspection = await checkDatabase(hooks, description, say);
  if (inspection) {
    const { maxLagMs } = readSettings(terminal.environment);
    await checkDelivery(hooks, inspection, maxLagMs, say);
  }
  // Where the subscriptions lead is in the database.
  if (urls && (inspection || urls.length > 0)) await checkEgress(terminal, hooks, urls, say);
}
