import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { UsageError } from "./command.ts";
import type { Option, Options } from "./options.ts";
import { nearest } from "./suggest.ts";

type Parsed<Given extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: Given; strict: true; allowPositionals: true }>
>;

/** Reads the flags of a command; it takes nothing besides. @throws UsageError */
export function readFlags<const Given extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Given,
): Parsed<Given>["values"] {
  return parsed(args, options, false).values;
}

/**
 * Reads flags and what stands beside them. An empty value is refused: it is most often a shell variable that was not
 * set, and a filter without its value would mean everything. @throws UsageError
 */
export function readArguments<const Given extends Options>(
  args: readonly string[],
  options: Given,
): Parsed<Given> {
  const result = parsed(args, options, true);
  for (const [name, value] of Object.entries<unknown>(result.values))
    if ([value].flat().includes("") && !(options[name] as Option).mayBeEmpty)
      throw new UsageError(`--${name} is empty; leave it out, or give it a value.`);
  if (result.positionals.includes("")) throw new UsageError("An id is empty.");
  return result;
}

function parsed<const Given extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Given,
  allowPositionals: boolean,
): Parsed<Given> {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals }) as Parsed<Given>;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(unknownOption(error, Object.keys(options)) ?? error.message);
  }
}

function unknownOption(error: TypeError, known: readonly string[]): string | undefined {
  if ((error as NodeJS.ErrnoException).code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION") return undefined;
  const typed = /'(-[^']*)'/.exec(error.message)?.[1];
  if (typed === undefined) return undefined;
  const near = nearest(typed.replace(/^-+/, ""), known);
  return `There is no option ${typed}.${near === undefined ? "" : ` Did you mean --${near}?`}`;
}

/** The one id that a command is about. @throws UsageError */
export function oneId(positionals: readonly string[], what: string): string {
  const [id, more] = positionals;
  if (id === undefined) throw new UsageError(`The id of ${what} is missing.`);
  if (more !== undefined) throw new UsageError(`One id is enough; ${JSON.stringify(more)} is too much.`);
  return id;
}

/** At least one id; the same one twice counts once. @throws UsageError */
export function someIds(positionals: readonly string[], what: string): readonly string[] {
  if (positionals.length === 0) throw new UsageError(`The id of ${what} is missing.`);
  return [...new Set(positionals)];
}

/** A port number from a flag. @throws UsageError */
export function readPort(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new UsageError(`${flag} must be a port number from 0 to 65535.`);
  return port;
}

/** A whole number from a flag. @throws UsageError */
export function readWhole(text: string | undefined, flag: string, least: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least)) throw new UsageError(`${flag} must be a whole number, ${least} or more.`);
  return value;
}

/** One of a few words from a flag. @throws UsageError */
export function readChoice<const Word extends string>(
  text: string | undefined,
  flag: string,
  words: readonly Word[],
): Word | undefined {
  if (text === undefined) return undefined;
  const found = words.find((word) => word === text);
  if (found !== undefined) return found;
  const near = nearest(text, words);
  throw new UsageError(
    `${flag} must be one of ${words.join(", ")}, not ${JSON.stringify(text)}.${near ? ` Did you mean ${near}?` : ""}`,
  );
}
