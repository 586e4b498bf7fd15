import { AsyncLocalStorage } from "node:async_hooks";
import { type Clock, systemClock } from "../model/clock.ts";
import type { LogEntry, Logger, LogLevel } from "../model/observe.ts";
import type { Settings } from "../model/settings.ts";

const ranks: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Where lines go: warnings and errors apart from the rest, as the console has it. */
export interface LogOutput {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
}

const terminal: LogOutput = {
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
};

/** The logger that HOOKWELL_LOG and HOOKWELL_LOG_LEVEL ask for. */
export function loggerFromSettings(
  { log, logLevel }: Pick<Settings, "log" | "logLevel">,
  options: { readonly output?: LogOutput; readonly clock?: Clock } = {},
): Logger {
  const { output = terminal, clock = systemClock } = options;
  return log === "json" ? jsonLogger(logLevel, output, clock) : textLogger(logLevel, output);
}

function textLogger(least: LogLevel, { out, err }: LogOutput): Logger {
  const at = (level: LogLevel, write: (line: string) => void) =>
    ranks[level] < ranks[least] ? () => {} : write;
  return { info: at("info", out), warn: at("warn", err), error: at("error", err) };
}

/**
 * One JSON object a line: `time`, `level`, `event` (of observable events and requests), `message`, and the fields of
 * the event. Whatever looks like a key or a signing secret is cut, wherever it came from.
 */
function jsonLogger(least: LogLevel, { out, err }: LogOutput, clock: Clock): Logger {
  const context = new AsyncLocalStorage<Readonly<Record<string, string>>>();
  const write = ({ level, event, message, fields }: Partial<LogEntry> & Pick<LogEntry, "level">): void => {
    if (ranks[level] < ranks[least]) return;
    const line = JSON.stringify({
      time: clock().toISOString(),
      level,
      event,
      message,
      ...fields,
      ...context.getStore(),
    });
    (ranks[level] >= ranks.warn ? err : out)(withoutSecrets(line));
  };
  const at = (level: LogLevel) => (message: string) => write({ level, message });
  return {
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    structured: {
      entry: write,
      within: (fields, work) => context.run({ ...context.getStore(), ...fields }, work),
    },
  };
}

/** Keys, signing secrets, and passwords in urls; JSON escapes none of their characters. */
function withoutSecrets(line: string): string {
  return line
    .replace(/\b(hwk_|whsec_)[A-Za-z0-9+/=_-]+/g, "$1[cut]")
    .replace(/(:\/\/[^\s/:@"]*:)[^\s@"/]+@/g, "$1[cut]@");
}
