import { requestSealName } from "./request-contract.ts";

/** A table with a column `sealed`: whoever adds one adds it here, so that it is sealed anew with the others. */
export interface SealedPlace {
  /** Without schema or prefix. */
  readonly table: string;
  /** Primary key. */
  readonly columns: readonly string[];
  /** What the text of a row is tied to. */
  nameOf(values: readonly string[]): string;
}

export const sealedPlaces: readonly SealedPlace[] = [
  { table: "endpoint", columns: ["id"], nameOf: ([id = ""]) => endpointName(id) },
  {
    table: "idempotent_request",
    columns: ["owner", "key"],
    nameOf: ([owner = "", key = ""]) => requestSealName({ owner, key }),
  },
];

/** What the sealed text of an endpoint version is tied to. */
export function endpointName(id: string): string {
  return `endpoint ${id}`;
}

/** Where a walk through all places stands. */
export interface SealedCursor {
  /** Index of the place. */
  readonly place: number;
  /** Go on after this key; empty = from the beginning. */
  readonly after: readonly string[];
}

export function readCursor(text: string | undefined): SealedCursor {
  if (text === undefined) return { place: 0, after: [] };
  const [place, ...after] = JSON.parse(text) as [number, ...string[]];
  return { place, after };
}

/** Where to go on after a batch; undefined after the last place. */
export function nextCursor({ place }: SealedCursor, last: readonly string[] | undefined): string | undefined {
  if (last) return JSON.stringify([place, ...last]);
  return place + 1 < sealedPlaces.length ? JSON.stringify([place + 1]) : undefined;
}

/** A text that another key than the newest sealed, and what it becomes. */
export interface Resealed {
  readonly values: readonly string[];
  readonly name: string;
  readonly old: string;
  readonly sealed: string;
  readonly damaged: boolean;
}
