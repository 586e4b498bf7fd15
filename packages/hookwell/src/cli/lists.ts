import { stringifyJson } from "../model/json.ts";
import { decodeCursor, encodeCursor } from "../publish/api-json.ts";
import type { Page, PageOf, PagePosition } from "../store/contract.ts";
import { readWhole } from "./arguments.ts";
import { type Terminal, UsageError } from "./command.ts";
import { type Column, Table } from "./terminal/table.ts";

const defaultLimit = 50;
const mostPerPage = 100;

export interface ListFlags {
  readonly limit?: string;
  readonly all?: boolean;
  readonly cursor?: string;
  readonly json?: boolean;
}

/** How much of a list is wanted. @throws UsageError */
export function readListFlags(flags: ListFlags): {
  readonly limit: number;
  readonly after: PagePosition | undefined;
} {
  if (flags.all && flags.limit !== undefined) throw new UsageError("Give --all or --limit, not both.");
  const limit = flags.all ? Number.POSITIVE_INFINITY : (readWhole(flags.limit, "--limit", 1) ?? defaultLimit);
  const after = flags.cursor === undefined ? undefined : decodeCursor(flags.cursor);
  if (flags.cursor !== undefined && !after)
    throw new UsageError("--cursor is not the `next_cursor` of a list.");
  return { limit, after };
}

/**
 * Prints a list while it is read, page after page: a table, or `{"items": […], "next_cursor": …}` with one item a
 * line. What comes next is said on standard error.
 */
export async function printList<T>(
  terminal: Terminal,
  flags: ListFlags,
  list: {
    fetch(page: Page): Promise<PageOf<T>>;
    readonly toJson: (item: T) => unknown;
    readonly columns: readonly Column<T>[];
    /** Said when there is none: "No event matches." */
    readonly none: string;
  },
): Promise<void> {
  const { limit, after } = readListFlags(flags);
  const out = flags.json ? jsonWriter(terminal, list.toJson) : tableWriter(terminal, list.columns);
  let printed = 0;
  let next = after;
  do {
    const page: PageOf<T> = await list.fetch({
      limit: Math.min(limit - printed, mostPerPage),
      ...(next && { after: next }),
    });
    out.rows(page.items);
    printed += page.items.length;
    next = page.next;
  } while (next && printed < limit && !terminal.unread?.aborted);
  const cursor = next ? encodeCursor(next) : null;
  out.end(cursor);
  if (flags.json) return;
  if (printed === 0) terminal.note(list.none);
  if (cursor !== null) terminal.note(`There are more: add --all, or --cursor ${cursor}`);
}

interface Writer<T> {
  rows(items: readonly T[]): void;
  end(cursor: string | null): void;
}

function tableWriter<T>(terminal: Terminal, columns: readonly Column<T>[]): Writer<T> {
  const table = new Table(terminal, columns);
  return { rows: (items) => table.print(items), end: () => {} };
}

function jsonWriter<T>(terminal: Terminal, toJson: (item: T) => unknown): Writer<T> {
  // An item is held back until it is known whether a comma follows it.
  let held: string | undefined;
  terminal.print('{"items":[');
  return {
    rows(items) {
      for (const item of items) {
        if (held !== undefined) terminal.print(`${held},`);
        held = stringifyJson(toJson(item));
      }
    },
    end(cursor) {
      if (held !== undefined) terminal.print(held);
      terminal.print(`],"next_cursor":${JSON.stringify(cursor)}}`);
    },
  };
}

/** One JSON document in one line. */
export function printJson(terminal: Terminal, value: unknown): void {
  terminal.print(stringifyJson(value));
}
