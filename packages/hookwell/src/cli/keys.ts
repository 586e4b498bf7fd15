import { keyToJson } from "../publish/api-json.ts";
import type { ApiKeyRecord } from "../store/contract.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { twoKindsOfKeys } from "./keys-create.ts";
import { printList, readListFlags } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, pageOptions } from "./options.ts";
import { nearest } from "./suggest.ts";
import type { Column } from "./terminal/table.ts";
import { shortTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

const options = { ...pageOptions, ...databaseOptions, ...jsonOption } as const satisfies Options;

const summary = "list the keys of the REST API";

export const keys: Command = {
  name: "keys",
  summary,
  options,
  help: commandHelp({
    name: "keys",
    summary,
    usage: [["keys [list]", "newest first; the keys themselves are not stored and cannot be shown"]],
    options,
    notes: [twoKindsOfKeys],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const word = positionals[positionals[0] === "list" ? 1 : 0];
    if (word !== undefined) {
      const near = nearest(word, ["list", "create", "delete", "generate"]);
      throw new UsageError(
        `There is no command keys ${JSON.stringify(word)}.${near ? ` Did you mean \`hookwell keys ${near}\`?` : ""}`,
      );
    }
    readListFlags(flags);
    return withHooks(terminal, flags, async (hooks) => {
      await printList(terminal, flags, {
        fetch: (page) => hooks.keys.list(page),
        toJson: keyToJson,
        columns,
        none: "There is no API key; `hookwell keys create` makes one.",
      });
      return exitCode.ok;
    });
  },
};

const columns: readonly Column<ApiKeyRecord>[] = [
  { name: "KEY", value: ({ id }) => id },
  { name: "NAME", value: ({ name }) => name },
  { name: "SCOPES", value: ({ scopes }) => scopes.join(",") },
  { name: "PROJECT", value: ({ projectId }) => projectId ?? "every project" },
  { name: "LAST USED", value: ({ lastUsedAt }) => shortTime(lastUsedAt) ?? "never" },
  { name: "EXPIRES", value: ({ expiresAt }) => shortTime(expiresAt) ?? "never" },
  { name: "CREATED", value: ({ createdAt }) => shortTime(createdAt) },
];
