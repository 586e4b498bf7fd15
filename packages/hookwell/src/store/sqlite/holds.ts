import type { Program, Row } from "../../adapters/seam.ts";
import { ValidationError } from "../../model/errors.ts";
import {
  type Holdable,
  type HoldKind,
  type HoldRecord,
  type HoldSelector,
  holdCovers,
  type StoredSelector,
  selectorOf,
  storedSelector,
} from "../../model/hold.ts";
import type { Visibility } from "../contract.ts";
import { mostHolds, type NewHold, tooManyHolds } from "../hold-contract.ts";
import { storable } from "../storable.ts";
import type { Connection } from "./connection.ts";
import { date, integer, optionalText, present, statement, text } from "./rows.ts";

const columns = "seq, id, kind, value, reason, held_by, created_at";

const setText = `
INSERT INTO hookwell_hold (id, kind, value, reason, held_by, created_at)
VALUES (?, ?, ?, ?, ?, CAST(? AS INTEGER))
ON CONFLICT DO NOTHING
RETURNING id`;
const oneText = `SELECT ${columns} FROM hookwell_hold WHERE kind = ? AND value = ?`;
const countText = "SELECT count(*) AS count FROM hookwell_hold";
const releaseText = `
DELETE FROM hookwell_hold WHERE kind = ? AND value = ? RETURNING ${columns}`;
const releaseByIdText = `DELETE FROM hookwell_hold WHERE id = ? RETURNING ${columns}`;
const listText = `SELECT ${columns} FROM hookwell_hold ORDER BY seq`;

/** True where a hold covers delivery `d`: the rule of model/hold.ts. */
export const coveredSql = `EXISTS (SELECT 1 FROM hookwell_hold h WHERE h.kind = 'all'
  OR (h.kind = 'project' AND h.value = d.project_id)
  OR (h.kind = 'type' AND (h.value = d.type OR (substr(h.value, -2) = '.*'
    AND substr(d.type, 1, length(h.value) - 1) = substr(h.value, 1, length(h.value) - 1)))))`;

/**
 * due_at of the first pending row of a lane that no hold covers: looks past what is held and not set aside yet, a
 * bounded way, because claims set it aside.
 */
export const firstUnheldSql = (lane: string): string => `(
    SELECT min(d.due_at) FROM (
      SELECT due_at, type, project_id FROM hookwell_delivery d INDEXED BY hookwell_delivery_pending
      WHERE d.subscription_id = ${lane} AND d.status = 'pending'
      ORDER BY due_at LIMIT CASE WHEN EXISTS (SELECT 1 FROM hookwell_hold) THEN 1000 ELSE 1 END) d
    WHERE NOT ${coveredSql})`;

/** A hold as a claim reads it. */
export interface ActiveHold extends StoredSelector {
  readonly seq: number;
}

/** @throws ValidationError beyond the most holds */
export function* setHoldProgram(
  { id, selector, reason, heldBy }: NewHold,
  now: number,
): Program<{ readonly hold: HoldRecord; readonly created: boolean }> {
  const { kind, value } = storedSelector(selector);
  const texts = [reason, heldBy].map((given) => (given === undefined ? null : storable(given)));
  // Written before it is read, so that a transaction begun DEFERRED waits for the write lock here.
  const written = yield statement(setText, id, kind, value, ...texts, now);
  const [row] = yield statement(oneText, kind, value);
  if (written.length > 0 && integer((yield statement(countText))[0]!.count) > mostHolds) {
    yield statement(releaseByIdText, id);
    throw new ValidationError(tooManyHolds);
  }
  return { hold: toHold(row!), created: written.length > 0 };
}

export function* releaseHoldProgram(
  which: HoldSelector | { readonly id: string },
): Program<HoldRecord | undefined> {
  const wanted = "id" in which ? undefined : storedSelector(which);
  const [row] = wanted
    ? yield statement(releaseText, wanted.kind, wanted.value)
    : yield statement(releaseByIdText, (which as { readonly id: string }).id);
  return row && toHold(row);
}

export function listHolds(
  connection: Connection,
  { projectId }: Pick<Visibility, "projectId">,
): HoldRecord[] {
  return connection
    .all(listText)
    .filter((row) => projectId === undefined || (row.kind === "project" && row.value === projectId))
    .map(toHold);
}

/** What is held now: a handful of rows. */
export function activeHolds(connection: Connection): ActiveHold[] {
  return connection
    .all(listText)
    .map((row) => ({ seq: integer(row.seq), kind: text(row.kind) as HoldKind, value: text(row.value) }));
}

export function holdsAll(holds: readonly ActiveHold[]): boolean {
  return holds.some(({ kind }) => kind === "all");
}

export function coveringHold(holds: readonly ActiveHold[], row: Holdable): ActiveHold | undefined {
  return holds.find((hold) => holdCovers(hold, row));
}

function toHold(row: Row): HoldRecord {
  return present<HoldRecord>({
    id: text(row.id),
    selector: selectorOf({ kind: text(row.kind) as HoldKind, value: text(row.value) }),
    reason: optionalText(row.reason),
    heldBy: optionalText(row.held_by),
    createdAt: date(row.created_at),
  });
}
