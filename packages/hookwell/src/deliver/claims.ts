import type { ClaimResult, DispatchRoom } from "../store/contract.ts";

/** What one round of the dispatcher did. */
export interface DispatchRound {
  /** Events it looked at. */
  readonly taken: number;
  /** Those that it moved on. */
  readonly dispatched: number;
  /** The batch was full: more is waiting now. */
  readonly again: boolean;
  /** Rows were queued that no worker was given. */
  readonly queued: boolean;
}

/** The worker beside a dispatcher, which sends what is claimed as it is made. */
export interface Claims {
  /** Rows that it could send now. 0 = it is behind, and what is dispatched only makes its queue longer. */
  readonly free: number;
  /**
   * Once no claim is under way. Nobody else claims for it until `end` is called; after a second claims go on, and what
   * the dispatch claims is given back. Undefined = it has no room.
   */
  begin(): Promise<DispatchClaim | undefined>;
}

export interface DispatchClaim {
  readonly room: DispatchRoom;
  /** Begins to send what the dispatch claimed. */
  took(claimed: Pick<ClaimResult, "deliveries" | "failed">): void;
  end(): void;
}
