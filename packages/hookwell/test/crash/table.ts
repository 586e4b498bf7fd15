/** A Markdown table, padded as the formatter wants it. `columns`: names; those with "#" before them hold numbers. */
export function markdownTable(
  columns: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const names = columns.map((name) => name.replace("#", ""));
  const right = columns.map((name) => name.startsWith("#"));
  const texts = rows.map((row) => row.map(String));
  const widths = names.map((name, at) => Math.max(3, name.length, ...texts.map((row) => row[at]!.length)));
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
  const padded = (row: readonly string[]): string =>
    line(row.map((cell, at) => (right[at] ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!))));
  const rule = widths.map((width, at) => (right[at] ? `${"-".repeat(width - 1)}:` : "-".repeat(width)));
  return padded(names) + line(rule) + texts.map(padded).join("");
}
