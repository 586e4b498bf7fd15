import { isHookwellError } from "../model/errors.ts";
import { version } from "../model/version.ts";
import { type Command, exitCode, exitCodesHelp, type Terminal, UsageError } from "./command.ts";
import { keysGenerate } from "./keys-generate.ts";
import { listen } from "./listen.ts";
import { migrate } from "./migrate.ts";
import { serve } from "./serve.ts";
import { nearest } from "./suggest.ts";
import { worker } from "./worker.ts";

const commands: readonly Command[] = [migrate, serve, worker, listen, keysGenerate];

const help = `hookwell ${version}: transactional webhooks

  hookwell <command> [options]

Commands
${commands.map(({ name, summary }) => `  ${name.padEnd(15)} ${summary}`).join("\n")}

Options
  --help       this text; after a command, the text of the command
  --version

${exitCodesHelp}`;

/** Runs one command line. Answers the exit code; undefined = the command goes on running. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number | undefined> {
  const command = commands.find(({ name }) => name === args.slice(0, name.split(" ").length).join(" "));
  if (!command) return withoutCommand(args, terminal);
  const rest = args.slice(command.name.split(" ").length);
  if (rest.includes("--help") || rest.includes("-h")) {
    terminal.print(command.help.trimEnd());
    return exitCode.ok;
  }
  try {
    return await command.run(rest, terminal);
  } catch (error) {
    return report(error, command, terminal);
  }
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
  if (error instanceof UsageError) {
    terminal.note(`hookwell ${command.name}: ${error.message}\nSee \`hookwell ${command.name} --help\`.`);
    return exitCode.usage;
  }
  if (!isHookwellError(error)) {
    terminal.note(`hookwell ${command.name} failed: ${error instanceof Error ? error.stack : String(error)}`);
    return exitCode.failed;
  }
  terminal.note(`hookwell ${command.name}: ${error.message}`);
  return error.code === "configuration" || error.code === "invalid_setting"
    ? exitCode.usage
    : exitCode.failed;
}
