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
  /** Undefined = it has no room, or is claiming itself. Nobody else claims for it until `end` is called. */
  begin(): DispatchClaim | undefined;
}

export interface DispatchClaim {
  readonly room: DispatchRoom;
  /** Begins to send what the dispatch claimed. */
  took(claimed: Pick<ClaimResult, "deliveries" | "failed">): void;
  end(): void;
}
