import { type JsonValue, parseJson } from "../model/json.ts";
import { readArguments, readWhole } from "./arguments.ts";
import { type Command, exitCode, type Terminal, UsageError } from "./command.ts";
import { commandHelp } from "./help.ts";
import { printJson } from "./lists.ts";
import { databaseOptions, jsonOption, type Options } from "./options.ts";
import { readInput, readText } from "./read-text.ts";
import { readTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  data: { type: "string", value: "<json>", help: "what the event says" },
  "data-file": { type: "string", value: "<file>", help: "the same from a file; - is standard input" },
  id: {
    type: "string",
    value: "<id>",
    help: "names the fact: emitted again with the same content it changes nothing. Absent = made, and printed",
  },
  project: { type: "string", value: "<id>", help: "needed, unless --config has a default" },
  tenant: { type: "string", value: "<id>", help: "the tenant that it belongs to" },
  at: { type: "string", value: "<time>", help: "when it happened: 5m ago, or RFC 3339. Absent = now" },
  subject: { type: "string", value: "<text>", help: "what it is about, such as user:42" },
  revision: { type: "string", value: "<n>", help: "revision of the subject; each one is used once" },
  actor: { type: "string", value: "<type:id>", help: "who caused it, such as user:7" },
  audience: {
    type: "string",
    multiple: true,
    value: "<owner>",
    help: "owners whose subscriptions may get it",
  },
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

export const emit: Command = {
  name: "emit",
  summary: "write one event, from a script or by hand",
  options,
  help: commandHelp({
    name: "emit",
    summary: "write one event, from a script or by hand",
    usage: [
      ["emit <type> --project <id> --data '{…}'"],
      ["emit <type> --project <id> --data-file <file>"],
      ["emit <type> --project <id> < data.json"],
    ],
    options,
    notes: [
      "It commits in a transaction of its own: an application emits with hooks.emit, in the transaction of the change. Without --config the data is taken as it is and the body has the default envelope; with it, the event type's schema, subject and envelope hold, and only a process with that module dispatches it.",
      "It prints the id of the event. With --id a script may be run again after a crash: the event is there once.",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const [type, more] = positionals;
    if (type === undefined) throw new UsageError("The event type is missing.");
    if (more !== undefined) throw new UsageError(`One event type is enough; ${more} is too much.`);
    const revision = readWhole(flags.revision, "--revision", 0);
    const actor = readActor(flags.actor);
    const data = await readData(terminal, flags);
    return withHooks(terminal, flags, async (hooks) => {
      if (flags.project === undefined && hooks.project === undefined)
        throw new UsageError("--project is needed: the instance has no default.");
      const result = await hooks.emitUnknown(type, data, {
        tx: "own",
        id: flags.id,
        projectId: flags.project,
        tenantId: flags.tenant,
        occurredAt: readTime(flags.at, "at", hooks.clock()),
        subject: flags.subject,
        revision,
        actor,
        audience: flags.audience,
      });
      if (flags.json) printJson(terminal, { id: result.id, duplicate: result.duplicate });
      else {
        terminal.print(result.id);
        if (result.duplicate) terminal.note("It was there already, with this content; nothing was written.");
      }
      return exitCode.ok;
    });
  },
};

async function readData(
  terminal: Terminal,
  flags: { readonly data?: string; readonly "data-file"?: string },
): Promise<JsonValue> {
  const file = flags["data-file"];
  if (flags.data !== undefined && file !== undefined)
    throw new UsageError("Give --data or --data-file, not both.");
  if (flags.data !== undefined) return parsed(flags.data, "--data");
  if (file !== undefined && file !== "-") return parsed(await readText(terminal, file), file);
  const text = await readInput(terminal);
  if (text.trim() === "")
    throw new UsageError("There is no data: give --data, --data-file, or JSON on standard input.");
  return parsed(text, "Standard input");
}

function parsed(text: string, where: string): JsonValue {
  try {
    return parseJson(text.replace(/^\ufeff/, ""));
  } catch (error) {
    throw new UsageError(`${where} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readActor(text: string | undefined): { readonly type: string; readonly id: string } | undefined {
  if (text === undefined) return undefined;
  const [, type, id] = /^([^:]+):(.+)$/s.exec(text) ?? [];
  if (type === undefined || id === undefined)
    throw new UsageError("--actor must be a type and an id with a colon between them, such as user:7.");
  return { type, id };
}
