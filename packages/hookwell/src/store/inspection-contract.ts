import type { Now } from "./contract.ts";

/** One thing that was looked at. `problem`: somebody must act; `note`: good to know. */
export interface Finding {
  readonly level: "ok" | "note" | "problem";
  /** A short stable name: `connections`, `key file`. */
  readonly check: string;
  readonly message: string;
  /** What to do. */
  readonly advice?: string;
}

/** Undispatched events that the same processes may take. */
export interface Undispatched {
  /** The event type, or `"*"` for events that any process may dispatch. */
  readonly route: string;
  /** When the oldest of the first thousand of them was captured. */
  readonly oldestAt: Date;
}

export interface StoreInspection {
  /** The clock that due times and leases are compared with. */
  readonly clock: Date;
  /** By route, the first {@link mostRoutes} of them. */
  readonly undispatched: readonly Undispatched[];
  /** What can be said of the database itself: settings, files, connections. */
  readonly findings: readonly Finding[];
}

export const mostRoutes = 100;

/** How an operator looks at a store. Reads a bounded number of rows and changes nothing. */
export interface InspectionStore {
  inspect(now: Now): Promise<StoreInspection>;
  /**
   * Proves that the encryption keys open what is sealed. Unlike `open` it leaves no check value and makes no key file.
   * `unused`: there is no key yet, and nothing that would need one.
   * @throws EncryptionKeyError
   */
  checkKeys(): Promise<"usable" | "unused">;
}
