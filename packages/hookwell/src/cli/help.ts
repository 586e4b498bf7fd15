import { exitCodesHelp } from "./command.ts";
import type { Options } from "./options.ts";
import { wrap } from "./terminal/text-width.ts";

const lineWidth = 116;
const widestName = 26;

/** Text of `--help`: what it is, how it is called, every option, and what one should know. */
export function commandHelp(parts: {
  readonly name: string;
  readonly summary: string;
  /** Lines of call and meaning, without `hookwell`. */
  readonly usage: readonly (readonly [call: string, meaning?: string])[];
  readonly options: Options;
  /** Paragraphs; one that begins with white space is kept as it is. */
  readonly notes?: readonly string[];
  /** What an exit code means here in particular. */
  readonly exits?: string;
}): string {
  const paragraphs = [
    `hookwell ${parts.name}: ${parts.summary}`,
    columns(parts.usage.map(([call, meaning = ""]) => [`hookwell ${call}`, meaning])),
    `Options\n${columns([...optionRows(parts.options), ["--help", ""]], widestName)}`,
    ...(parts.notes ?? []).map((note) => (/^\s/.test(note) ? note : wrap(note, lineWidth).join("\n"))),
    exitCodesHelp.trimEnd() + (parts.exits === undefined ? "" : `\n  ${parts.exits}`),
  ];
  return `${paragraphs.join("\n\n")}\n`;
}

function optionRows(options: Options): [string, string][] {
  return Object.entries(options).map(([name, { value, help, multiple }]) => [
    `--${name}${value === undefined ? "" : ` ${value}`}${multiple ? "…" : ""}`,
    help,
  ]);
}

/** Two columns, the second one wrapped; a first column that is too wide gets a line of its own. */
function columns(rows: readonly (readonly [string, string])[], most = lineWidth / 2): string {
  const width = Math.max(...rows.map(([left]) => left.length).filter((length) => length <= most), 0);
  return rows
    .flatMap(([left, right]) => {
      const lines = right === "" ? [""] : wrap(right, lineWidth - width - 5);
      const [first = "", ...rest] = left.length > width ? ["", ...lines] : lines;
      const indent = " ".repeat(width + 4);
      return [`  ${left.padEnd(width)}  ${first}`.trimEnd(), ...rest.map((line) => indent + line)];
    })
    .join("\n");
}
