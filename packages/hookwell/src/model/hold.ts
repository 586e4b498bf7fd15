import { coveringFilters } from "./matching.ts";

/** What an operator holds: everything, one project, or the event types that a filter entry covers. */
export type HoldSelector =
  | { readonly all: true }
  | { readonly projectId: string }
  /** A filter entry as subscriptions have it: `booking.created`, or `booking.*`. */
  | { readonly type: string };

/** A hold that is in force: capture and dispatch go on, and nothing it covers is sent. */
export interface HoldRecord {
  readonly id: string;
  readonly selector: HoldSelector;
  /** Why, in the operator's words. */
  readonly reason?: string;
  /** Who set it. */
  readonly heldBy?: string;
  readonly createdAt: Date;
}

export type HoldKind = "all" | "project" | "type";

/** A selector as it is stored: one value of each kind is held once. `value` of `all` is the empty text. */
export interface StoredSelector {
  readonly kind: HoldKind;
  readonly value: string;
}

export function storedSelector(selector: HoldSelector): StoredSelector {
  if ("all" in selector) return { kind: "all", value: "" };
  if ("projectId" in selector) return { kind: "project", value: selector.projectId };
  return { kind: "type", value: selector.type };
}

export function selectorOf({ kind, value }: StoredSelector): HoldSelector {
  if (kind === "all") return { all: true };
  return kind === "project" ? { projectId: value } : { type: value };
}

/** A delivery, as far as holds look at it. */
export interface Holdable {
  readonly projectId: string;
  readonly type: string;
}

/** The rule. The memory store calls it, SQLite for rows it has read; elsewhere the same is said in SQL. */
export function holdCovers({ kind, value }: StoredSelector, { projectId, type }: Holdable): boolean {
  if (kind === "all") return true;
  return kind === "project" ? value === projectId : coveringFilters(type).includes(value);
}

/** In words: `everything`, `project live`, `type booking.*`. */
export function describeSelector(selector: HoldSelector): string {
  const { kind, value } = storedSelector(selector);
  return kind === "all" ? "everything" : `${kind} ${value}`;
}

/** The same with since when, by whom and why, in one line. */
export function describeHold({ selector, createdAt, heldBy, reason }: HoldRecord): string {
  const facts = [`since ${createdAt.toISOString()}`, ...(heldBy === undefined ? [] : [`by ${heldBy}`])];
  const words = `${describeSelector(selector)} (${facts.join(", ")}${reason === undefined ? "" : `: ${reason}`})`;
  return words.replace(/\s+/gu, " ");
}
