import { keyToJson } from "../publish/api-json.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { printRecord } from "./terminal/table.ts";
import { readFutureTime, shortTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

/** The command that everybody confuses with another is explained in each of the two. */
export const twoKindsOfKeys =
  "Two things are called keys. An API key (hwk_…) is what a client of the REST API sends as `Authorization: Bearer`: keys create, list, delete. An encryption key is what seals signing secrets in the database: keys generate prints one for HOOKWELL_ENCRYPTION_KEYS.";

const options = {
  name: { type: "string", value: "<text>", help: "what it is for; needed" },
  scope: {
    type: "string",
    multiple: true,
    value: "<scope>",
    help: "what it may do: emit, read, operate, manage, admin; at least one",
  },
  project: { type: "string", value: "<id>", help: "it sees this project only. Absent = every project" },
  expires: { type: "string", value: "<time>", help: "90d from now, or a time. Absent = never" },
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "make a key of the REST API";

export const keysCreate: Command = {
  name: "keys create",
  summary,
  options,
  help: commandHelp({
    name: "keys create",
    summary,
    usage: [["keys create --name <text> --scope <scope>…"]],
    options,
    notes: [
      "The key is printed once: only its hash is stored. Scopes: emit (write events), read, operate (retry, cancel, replay, pause), manage (change subscriptions), admin (everything, and keys).",
      twoKindsOfKeys,
      "  hookwell keys create --name billing-service --scope emit --project live --expires 365d",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    if (positionals.length > 0) throw new UsageError(`${JSON.stringify(positionals[0])} is too much.`);
    const { name, scope } = flags;
    if (name === undefined) throw new UsageError("--name is missing.");
    if (scope === undefined)
      throw new UsageError("--scope is missing: emit, read, operate, manage or admin.");
    return withHooks(terminal, flags, async (hooks) => {
      const created = await hooks.keys.create({
        name,
        // `--scope emit,read` is what many try first.
        scopes: scope.flatMap((entry) => entry.split(",")),
        projectId: flags.project,
        expiresAt: readFutureTime(flags.expires, "expires", hooks.clock()),
      });
      if (flags.json) printJson(terminal, { ...keyToJson(created), key: created.key });
      else {
        printRecord(terminal, [
          ["id", created.id],
          ["name", created.name],
          ["scopes", created.scopes.join(", ")],
          ["project", created.projectId ?? "every project"],
          ["expires", shortTime(created.expiresAt) ?? "never"],
          ["key", created.key],
        ]);
        terminal.note("The key is shown this once.");
      }
      return exitCode.ok;
    });
  },
};
