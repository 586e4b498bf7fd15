import { styleText } from "node:util";
import type { Terminal } from "../command.ts";
import { printable, printableLine } from "./printable.ts";
import { cutToWidth, padToWidth, textWidth } from "./text-width.ts";

const gap = "  ";
const narrowest = 20;

export interface Column<T> {
  readonly name: string;
  /** Undefined and null are shown as "-". */
  readonly value: (row: T) => string | number | null | undefined;
}

/** Rows in aligned columns. Pages of one list keep their columns: they only grow. */
export class Table<T> {
  readonly #terminal: Terminal;
  readonly #columns: readonly Column<T>[];
  readonly #widths: number[];
  #headed = false;

  constructor(terminal: Terminal, columns: readonly Column<T>[]) {
    this.#terminal = terminal;
    this.#columns = columns;
    this.#widths = columns.map(({ name }) => textWidth(name));
  }

  print(rows: readonly T[]): void {
    if (rows.length === 0) return;
    const cells = rows.map((row) =>
      this.#columns.map(({ value }) => printableLine(String(value(row) ?? "-"))),
    );
    for (const row of cells)
      row.forEach((cell, index) => {
        this.#widths[index] = Math.max(this.#widths[index]!, textWidth(cell));
      });
    if (!this.#headed)
      this.#line(
        this.#columns.map(({ name }) => name),
        "dim",
      );
    this.#headed = true;
    for (const row of cells) this.#line(row);
  }

  #line(cells: readonly string[], style?: "dim"): void {
    const line = cells
      .map((cell, index) => padToWidth(cell, this.#widths[index]!))
      .join(gap)
      .trimEnd();
    const { columns, colour } = this.#terminal;
    const shown = columns === undefined ? line : cutToWidth(line, Math.max(columns, narrowest));
    this.#terminal.print(colour && style ? styleText(style, shown, { validateStream: false }) : shown);
  }
}

/** One thing as lines of name and value; what is absent is left out, and further lines of a value are indented. */
export function printRecord(
  terminal: Terminal,
  pairs: readonly (readonly [name: string, value: string | number | null | undefined])[],
): void {
  const present = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(...present.map(([name]) => textWidth(name)), 0);
  for (const [name, value] of present) {
    const shown = terminal.colour
      ? styleText("dim", padToWidth(name, width), { validateStream: false })
      : padToWidth(name, width);
    const text = printable(String(value)).replaceAll("\n", `\n${" ".repeat(width + gap.length)}`);
    terminal.print(`${shown}${gap}${text}`);
  }
}
