import type { Row } from "../../adapters/seam.ts";
import { ValidationError } from "../../model/errors.ts";
import { systemRandom } from "../../model/ids.ts";
import type { ClaimRequest } from "../contract.ts";
import { claimTexts } from "./claim-sql.ts";
import type { Database } from "./database.ts";
import { integer, optionalInteger, optionalText, text } from "./rows.ts";

/** What a claim took, in the order of the turns. */
export interface Claimed {
  readonly rows: readonly { readonly id: string; readonly leaseToken: string }[];
  /** Lane of the last row. */
  readonly cursor: string;
  /** Ready lanes that had nothing due. */
  readonly empty: readonly string[];
  /** The instant the statement used, in epoch milliseconds. */
  readonly now: number;
  /** An operator holds some rows: these lanes may have them in the way. */
  readonly passed: readonly { readonly lane: string; readonly gave: boolean }[];
  readonly againInMs?: number;
}

/** Readies the lanes whose time has come, then takes rows by the turn rule. Each is one statement. */
export async function claimRows(db: Database, request: ClaimRequest): Promise<Claimed> {
  const { limit, cursor = "", room = limit, leaseMs } = request;
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new ValidationError([{ pointer: "/limit", message: "must be a whole number, 1 or more" }]);
  const texts = claimTexts(db.schema);
  const now = db.now(request.now);
  const token = tokenStart();
  await db.hot({ text: texts.wake, params: [now] });
  const params = [
    now,
    String(limit),
    cursor,
    String(Math.min(room, limit)),
    JSON.stringify(Object.fromEntries(request.rooms ?? [])),
    String(leaseMs),
    token,
  ];
  const way = db.shortWays.claim;
  let rows = await db.hot({ text: way.tries() ? texts.takeUnguarded : texts.take, params });
  let holds = holdsOf(rows);
  if (holds === "limits") {
    way.close();
    rows = await db.hot({ text: texts.take, params });
    holds = holdsOf(rows);
  }
  if (holds === "all") return { rows: [], cursor, empty: [], passed: [], now: 0 };
  if (holds !== undefined) rows = await db.hot({ text: texts.takeUnheld, params });
  const taken = rows.filter((row) => optionalText(row, "id") !== undefined);
  const last = taken.at(-1);
  const againInMs = last && optionalInteger(last, "again");
  const empty = rows
    .filter((row) => optionalText(row, "id") === undefined)
    .map((row) => text(row, "subscription_id"));
  const gave = new Set(taken.map((row) => text(row, "subscription_id")));
  return {
    ...(againInMs !== undefined && { againInMs }),
    rows: taken.map((row) => ({ id: text(row, "id"), leaseToken: text(row, "lease_token") })),
    cursor: last ? text(last, "subscription_id") : cursor,
    empty,
    passed: holds === undefined ? [] : [...lanesOf(empty, false), ...lanesOf(gave, true)],
    now: rows.length > 0 ? integer(rows[0]!, "now") : 0,
  };
}

/** What the tokens of one claim begin with. Not made in SQL: a server may ask the kernel for each random value. */
export function tokenStart(): string {
  return Buffer.from(systemRandom(15)).toString("base64url");
}

/** Why a statement took nothing. */
function holdsOf(rows: readonly Row[]): string | undefined {
  return rows.map((row) => optionalText(row, "holds")).find((value) => value !== undefined);
}

function lanesOf(ids: Iterable<string>, gave: boolean): Claimed["passed"] {
  return [...ids].map((lane) => ({ lane, gave }));
}

/**
 * Puts lanes without due rows to sleep until the least due time of their pending rows. The lane is locked first
 * and its rows are read by a later statement, with a new snapshot: whoever gives the lane work at the same time
 * has either committed it by then, and it is seen, or writes the lane after this has ended.
 */
export async function sleepLanes(db: Database, lanes: readonly string[], now: number): Promise<void> {
  const texts = claimTexts(db.schema);
  await db.transaction(async (run) => {
    const locked = await run({ text: texts.lock, params: [JSON.stringify(lanes)] });
    if (locked.length === 0) return;
    const ids = locked.map((row) => text(row, "subscription_id"));
    await run({ text: texts.sleep, params: [String(now), JSON.stringify(ids)] });
  });
}
