import { styleText } from "node:util";
import type { Finding } from "../../store/inspection-contract.ts";
import type { Terminal } from "../command.ts";
import { printJson } from "../lists.ts";
import { printableLine } from "../terminal/printable.ts";
import { wrap } from "../terminal/text-width.ts";

export type Found = Finding;

export const well = (check: string, message: string): Found => ({ level: "ok", check, message });
export const note = (check: string, message: string, advice?: string): Found => ({
  level: "note",
  check,
  message,
  ...(advice !== undefined && { advice }),
});
export const problem = (check: string, message: string, advice: string): Found => ({
  level: "problem",
  check,
  message,
  advice,
});

const colours = { ok: "green", note: "cyan", problem: "red" } as const;
const checkWidth = 14;
const plainWidth = 100;

/** One finding as it comes: a line, and what to do under it. */
export function printFound(terminal: Terminal, { level, check, message, advice }: Found): void {
  const mark = level === "problem" ? "PROBLEM" : level;
  const indent = " ".repeat(10 + checkWidth);
  const width = Math.max((terminal.columns ?? plainWidth) - indent.length, 30);
  const shownMark = mark.padEnd(8);
  const [first = "", ...rest] = wrap(printableLine(message), width);
  terminal.print(
    `${terminal.colour ? styleText(colours[level], shownMark, { validateStream: false }) : shownMark}  ${check.padEnd(checkWidth)}${first}`,
  );
  for (const line of rest) terminal.print(indent + line);
  if (advice === undefined) return;
  wrap(printableLine(advice), width - 3).forEach((line, index) => {
    terminal.print(`${indent}${index === 0 ? "-> " : "   "}${line}`);
  });
}

export function printReport(terminal: Terminal, found: readonly Found[]): void {
  printJson(terminal, {
    ok: !found.some(({ level }) => level === "problem"),
    checks: found.map(({ check, level, message, advice }) => ({
      check,
      level,
      message,
      advice: advice ?? null,
    })),
  });
}
