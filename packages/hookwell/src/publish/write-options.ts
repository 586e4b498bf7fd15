import type { Visibility } from "../store/contract.ts";

/** Joins a write to the caller's transaction. Absent = a transaction of its own. */
export interface WriteOptions<Tx> {
  readonly tx?: Tx | "own";
  /** Whom the write is made for: rows of another project, tenant or owner answer "not found". */
  readonly visibility?: Visibility;
}
