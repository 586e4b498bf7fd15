import { ValidationError } from "../../model/errors.ts";
import {
  type Holdable,
  type HoldRecord,
  type HoldSelector,
  holdCovers,
  type StoredSelector,
  storedSelector,
} from "../../model/hold.ts";
import type { Visibility } from "../contract.ts";
import { mostHolds, type NewHold, tooManyHolds } from "../hold-contract.ts";
import { storable } from "../storable.ts";
import { compareText, type MemoryState } from "./state.ts";

const keyOf = ({ kind, value }: StoredSelector): string => `${kind} ${value}`;

export function setHold(
  state: MemoryState,
  { id, selector, reason, heldBy }: NewHold,
  now: number,
): { readonly hold: HoldRecord; readonly created: boolean } {
  const stored = storedSelector(selector);
  const there = state.holds.get(keyOf(stored));
  if (there) return { hold: structuredClone(there.record), created: false };
  if ([...state.holds.values()].length >= mostHolds) throw new ValidationError(tooManyHolds);
  const record: HoldRecord = {
    id,
    selector: { ...selector },
    createdAt: new Date(now),
    ...(reason !== undefined && { reason: storable(reason) }),
    ...(heldBy !== undefined && { heldBy: storable(heldBy) }),
  };
  state.holds.set(keyOf(stored), { record, stored });
  return { hold: structuredClone(record), created: true };
}

export function releaseHold(
  state: MemoryState,
  which: HoldSelector | { readonly id: string },
): HoldRecord | undefined {
  const row =
    "id" in which
      ? [...state.holds.values()].find(({ record }) => record.id === which.id)
      : state.holds.get(keyOf(storedSelector(which)));
  if (row) state.holds.delete(keyOf(row.stored));
  return row?.record;
}

export function listHolds(state: MemoryState, { projectId }: Pick<Visibility, "projectId">): HoldRecord[] {
  return [...state.holds.values()]
    .filter(
      ({ stored: { kind, value } }) => projectId === undefined || (kind === "project" && value === projectId),
    )
    .map(({ record }) => structuredClone(record))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || compareText(a.id, b.id));
}

/** True while an operator holds it. */
export function isCovered(state: MemoryState, row: Holdable): boolean {
  for (const { stored } of state.holds.values()) if (holdCovers(stored, row)) return true;
  return false;
}
