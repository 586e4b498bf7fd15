import type { Program, Row } from "../../adapters/seam.ts";
import { StorageError, ValidationError } from "../../model/errors.ts";
import {
  type HoldKind,
  type HoldRecord,
  type HoldSelector,
  selectorOf,
  storedSelector,
} from "../../model/hold.ts";
import type { Visibility } from "../contract.ts";
import { type HoldsGivenBack, mostHolds, type NewHold, tooManyHolds } from "../hold-contract.ts";
import { storable } from "../storable.ts";
import type { Database } from "./database.ts";
import { holdTexts } from "./holds-sql.ts";
import { date, defined, integer, optionalText, text } from "./rows.ts";

/** @throws ValidationError beyond the most holds */
export function* setHold(
  schema: string,
  { id, selector, reason, heldBy }: NewHold,
  now: string | null,
): Program<{ readonly hold: HoldRecord; readonly created: boolean }> {
  const texts = holdTexts(schema);
  const { kind, value } = storedSelector(selector);
  const words = [reason, heldBy].map((given) => (given === undefined ? null : storable(given)));
  // Whoever set the same one first may release it in between.
  for (let tries = 1; tries <= 3; tries++) {
    const written = yield { text: texts.set, params: [now, id, kind, value, ...words] };
    const [row] = yield { text: texts.get, params: [kind, value] };
    if (!row) continue;
    if (written.length === 0) return { hold: toHold(row), created: false };
    const [counted] = yield { text: texts.count, params: [] };
    if (integer(counted!, "count") <= mostHolds) return { hold: toHold(row), created: true };
    yield { text: texts.releaseById, params: [id] };
    throw new ValidationError(tooManyHolds);
  }
  throw new StorageError("The hold could not be set: others set and release the same one; try again.");
}

export function* releaseHold(
  schema: string,
  which: HoldSelector | { readonly id: string },
): Program<HoldRecord | undefined> {
  const texts = holdTexts(schema);
  if ("id" in which) {
    const [row] = yield { text: texts.releaseById, params: [which.id] };
    return row && toHold(row);
  }
  const { kind, value } = storedSelector(which);
  const [row] = yield { text: texts.release, params: [kind, value] };
  return row && toHold(row);
}

export async function listHolds(
  db: Database,
  { projectId }: Pick<Visibility, "projectId">,
): Promise<HoldRecord[]> {
  const rows = await db.run({ text: holdTexts(db.schema).list, params: [] });
  return rows
    .filter((row) => projectId === undefined || (row.kind === "project" && row.value === projectId))
    .map(toHold);
}

/**
 * Sets held rows aside that a claim met in these lanes, behind every due time, so that no claim meets them again.
 * Answers how many.
 */
export async function setAside(
  db: Database,
  lanes: readonly { readonly lane: string; readonly gave: boolean }[],
  now: number,
): Promise<number> {
  const moved = await db.run({
    text: holdTexts(db.schema).setAside,
    params: [String(now), JSON.stringify(lanes)],
  });
  return moved.length;
}

/** Rows of released holds are due again as they were, and their lanes awake. */
export async function giveBackHeld(db: Database, limit: number, now: string | null): Promise<HoldsGivenBack> {
  const texts = holdTexts(db.schema);
  return await db.transaction(async (run) => {
    const found = await run({ text: texts.lanesToGiveBack, params: [] });
    if (found.length === 0) return { deliveries: 0, more: false };
    const lanes = JSON.stringify(
      found.map((row) => ({ seq: integer(row, "seq"), lane: text(row, "subscription_id") })),
    );
    const [back] = await run({ text: texts.giveBack, params: [now, String(limit), lanes] });
    // A later statement: it sees what is left.
    await run({ text: texts.done, params: [lanes] });
    return { deliveries: integer(back!, "rows"), more: true };
  });
}

export async function countToGiveBack(db: Database, max: number): Promise<number> {
  const [row] = await db.run({ text: holdTexts(db.schema).countToGiveBack, params: [String(max)] });
  return integer(row!, "count");
}

function toHold(row: Row): HoldRecord {
  return defined<HoldRecord>({
    id: text(row, "id"),
    selector: selectorOf({ kind: text(row, "kind") as HoldKind, value: text(row, "value") }),
    reason: optionalText(row, "reason"),
    heldBy: optionalText(row, "held_by"),
    createdAt: date(row, "created_at"),
  });
}
