import { isHookwellError, type ValidationError } from "../model/errors.ts";
import { version } from "../model/version.ts";
import { type Command, exitCode, exitCodesHelp, type Terminal, UsageError } from "./command.ts";
import { type CommandGroup, commandGroups } from "./commands.ts";
import { nearest } from "./suggest.ts";
import { printable } from "./terminal/printable.ts";
import { StoppedError } from "./terminal/stopped.ts";

const commands: readonly Command[] = commandGroups.flatMap((group) => group.commands);
const nameWidth = Math.max(...commands.map(({ name }) => name.length)) + 1;

const help = `hookwell ${version}: transactional webhooks

  hookwell <command> [options]

${commandGroups.map(groupHelp).join("\n\n")}

Options
  --help       this text; after a command, the text of the command
  --version

Every command works on the database itself: HOOKWELL_DATABASE_URL or DATABASE_URL (PostgreSQL), else SQLite in
HOOKWELL_DATA_DIR (./data), or that of --config hookwell.config.ts. Data goes to standard output, notes and progress to
standard error; --json prints the shapes of the REST API.

${exitCodesHelp}`;

function groupHelp({ title, commands }: CommandGroup): string {
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(nameWidth)} ${summary}`);
  return `${title}\n${rows.join("\n")}`;
}

/** Runs one command line. Answers the exit code; undefined = the command goes on running. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number | undefined> {
  const command = commandOf(args);
  if (!command) return withoutCommand(args, terminal);
  const rest = args.slice(command.name.split(" ").length);
  if (asksForHelp(rest)) {
    terminal.print(command.help.trimEnd());
    return exitCode.ok;
  }
  try {
    return await command.run(rest, terminal);
  } catch (error) {
    return report(error, command, terminal);
  }
}

/** The command with the most words that the line begins with: `subscriptions create` before `subscriptions`. */
function commandOf(args: readonly string[]): Command | undefined {
  return commands
    .filter(({ name }) => name === args.slice(0, name.split(" ").length).join(" "))
    .sort((a, b) => b.name.length - a.name.length)[0];
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === "--help" || arg === "-h");
}

function withoutCommand(args: readonly string[], terminal: Terminal): number {
  const [first] = args;
  if (first === "--version" || first === "-v") {
    terminal.print(version);
    return exitCode.ok;
  }
  if (first === "--help" || first === "-h" || first === "help") {
    const named = commands.find(({ name }) => name === args.slice(1).join(" "));
    terminal.print((named?.help ?? help).trimEnd());
    return exitCode.ok;
  }
  if (first === undefined) {
    terminal.note(help.trimEnd());
    return exitCode.usage;
  }
  const typed = args.filter((arg) => !arg.startsWith("-")).join(" ");
  const names = commands.map(({ name }) => name);
  const near =
    nearest(typed, names) ?? nearest(first, names) ?? names.find((name) => name.startsWith(`${first} `));
  terminal.note(
    `hookwell: there is no command ${JSON.stringify(typed || first)}.${near ? ` Did you mean \`hookwell ${near}\`?` : ""} See \`hookwell --help\`.`,
  );
  return exitCode.usage;
}

function report(error: unknown, command: Command, terminal: Terminal): number {
  terminal.redraw?.("");
  if (error instanceof StoppedError) {
    terminal.note(`hookwell ${command.name}: ${error.message}`);
    return exitCode.interrupted;
  }
  if (error instanceof UsageError) {
    terminal.note(`hookwell ${command.name}: ${error.message}\nSee \`hookwell ${command.name} --help\`.`);
    return exitCode.usage;
  }
  if (!isHookwellError(error)) {
    terminal.note(`hookwell ${command.name} failed: ${error instanceof Error ? error.stack : String(error)}`);
    return exitCode.failed;
  }
  const message = "problems" in error ? problemsText(error as ValidationError, command) : error.message;
  terminal.note(`hookwell ${command.name}: ${printable(message)}`);
  return wrongGiven(error.code) || "problems" in error ? exitCode.usage : exitCode.failed;
}

/** Codes that say that a value of the command line or a setting is wrong. */
function wrongGiven(code: string): boolean {
  return ["configuration", "invalid_setting", "unknown_event_type", "payload_too_large"].includes(code);
}

/** Names the option where the library names a field. */
function problemsText({ code, problems }: ValidationError, { options = {} }: Command): string {
  if (code === "event_schema_failed")
    return problems.map(({ pointer, message }) => `data${pointer}: ${message}.`).join("\n");
  return problems
    .map(({ pointer, message }) => {
      const [field = ""] = pointer.split("/").filter((part) => part !== "" && part !== "filter");
      const option = optionOfField[field] ?? field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return option in options ? `--${option} ${message}.` : `${pointer || "/"}: ${message}.`;
    })
    .join("\n");
}

const optionOfField: Readonly<Record<string, string>> = {
  projectId: "project",
  tenantId: "tenant",
  ownerId: "owner",
  eventTypes: "type",
  fields: "field",
  headers: "header",
  expiresAt: "expires",
  scopes: "scope",
  occurredAt: "at",
  project_id: "project",
  tenant_id: "tenant",
  owner_id: "owner",
  subscription_id: "subscription",
  event_id: "event",
  url_host: "url-host",
  error_code: "error-code",
  replay_id: "replay",
};
