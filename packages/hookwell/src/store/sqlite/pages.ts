import type { Row } from "../../adapters/seam.ts";
import { ValidationError } from "../../model/errors.ts";
import type { Page, PageOf, PagePosition, TimeRange } from "../contract.ts";
import type { Connection, SqliteValue } from "./connection.ts";
import { date, integer, text } from "./rows.ts";

/** Rows of the index that are looked at before other work gets its turn. */
const windowRows = 2_000;

export interface Condition {
  readonly sql: string;
  readonly params: readonly SqliteValue[];
}

export function condition(sql: string, ...params: SqliteValue[]): Condition {
  return { sql, params };
}

/** A list that runs newest first by (time, id). */
export interface Listing {
  /** SELECT list. */
  readonly columns: string;
  /** FROM, the listed table first, with the index that is to serve order and conditions. */
  readonly from: string;
  /** Joins that add columns and drop no row. */
  readonly joins: string;
  readonly time: string;
  readonly id: string;
  /** Equalities that the index begins with. */
  readonly served: readonly Condition[];
  /** What is to be checked row by row: a rare match then means looking at many rows, a window at a time. */
  readonly filters: readonly Condition[];
  /** True when what is served is a handful of rows, so that sorting them is no matter. */
  readonly few?: boolean;
}

/** @throws ValidationError */
function checkPage({ limit }: Page): void {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 100)
    throw new ValidationError([{ pointer: "/limit", message: "must be a whole number from 1 to 100" }]);
}

/** Reads one page. Long looks give way to other work between windows. */
export async function readPage<T>(
  connection: Connection,
  listing: Listing,
  range: TimeRange,
  page: Page,
  toItem: (row: Row) => T,
): Promise<PageOf<T>> {
  checkPage(page);
  const wanted = page.limit + 1;
  const rows: Row[] = [];
  let from = page.after;
  const windowed = listing.filters.length > 0 && !listing.few;
  for (;;) {
    const end = windowed ? windowEnd(connection, listing, range, from) : undefined;
    const { text: sql, params } = pageQuery(listing, range, from, end, wanted - rows.length);
    rows.push(...connection.all(sql, params));
    if (rows.length >= wanted || !end) break;
    from = end;
    await connection.giveWay();
  }
  const items = rows.slice(0, page.limit);
  const last = rows.length > page.limit ? positionOf(items.at(-1)!) : undefined;
  return { items: items.map(toItem), ...(last && { next: last }) };
}

export function pageQuery(
  { columns, from, joins, time, id, served, filters }: Listing,
  range: TimeRange,
  after: PagePosition | undefined,
  end: PagePosition | undefined,
  limit: number,
): { readonly text: string; readonly params: SqliteValue[] } {
  const place = [...placeConditions(time, id, range, after)];
  if (end) place.push(condition(`(${time}, ${id}) >= (?, ?)`, end.at.getTime(), end.id));
  const where = [...served, ...place, ...filters];
  return {
    text: `SELECT ${columns}, ${time} AS page_time, ${id} AS page_id FROM ${from} ${joins} ${whereText(where)}
ORDER BY ${time} DESC, ${id} DESC LIMIT CAST(? AS INTEGER)`,
    params: [...where.flatMap((item) => item.params), limit],
  };
}

/** Position of the last row of the window; undefined when fewer rows are left. */
function windowEnd(
  connection: Connection,
  { from, time, id, served }: Listing,
  range: TimeRange,
  after: PagePosition | undefined,
): PagePosition | undefined {
  const where = [...served, ...placeConditions(time, id, range, after)];
  const [row] = connection.all(
    `SELECT ${time} AS page_time, ${id} AS page_id FROM ${from} ${whereText(where)}
ORDER BY ${time} DESC, ${id} DESC LIMIT 1 OFFSET ?`,
    [...where.flatMap((item) => item.params), windowRows - 1],
  );
  return row && positionOf(row);
}

function placeConditions(
  time: string,
  id: string,
  { since, until }: TimeRange,
  after: PagePosition | undefined,
): Condition[] {
  return [
    ...(since ? [condition(`${time} >= ?`, since.getTime())] : []),
    ...(until ? [condition(`${time} < ?`, until.getTime())] : []),
    ...(after ? [condition(`(${time}, ${id}) < (?, ?)`, after.at.getTime(), after.id)] : []),
  ];
}

function whereText(conditions: readonly Condition[]): string {
  return conditions.length === 0 ? "" : `WHERE ${conditions.map((item) => item.sql).join("\n  AND ")}`;
}

function positionOf(row: Row): PagePosition {
  return { at: date(integer(row.page_time)), id: text(row.page_id) };
}
