import type { HoldRecord, HoldSelector } from "../model/hold.ts";
import type { Now, Scope, Visibility } from "./contract.ts";

export interface NewHold {
  readonly id: string;
  readonly selector: HoldSelector;
  readonly reason?: string;
  readonly heldBy?: string;
}

/** What one batch of giving back did. */
export interface HoldsGivenBack {
  readonly deliveries: number;
  /** The batch was full: call again. */
  readonly more: boolean;
}

/**
 * Holds of the operator. A pending delivery is held while one hold covers it: a claim does not take it, and what a
 * claim took just before is given back by its last look, without an attempt. Capture, dispatch, cancelling, failing
 * and retention go on. Holds overlap: what two cover goes when both are released.
 *
 * A store may set held rows aside as its claims meet them, so that they cost the claims after it nothing. What is set
 * aside is still held, and is given back after the release by `giveBackHeld`, which upkeep calls too.
 */
export interface HoldStore {
  /** Refuses more than {@link mostHolds}. What is held already stays as it is. @throws ValidationError */
  setHold(
    scope: Scope,
    hold: NewHold,
    now: Now,
  ): Promise<{ readonly hold: HoldRecord; readonly created: boolean }>;
  /** By selector or id. Undefined when that is not held. */
  releaseHold(scope: Scope, which: HoldSelector | { readonly id: string }): Promise<HoldRecord | undefined>;
  /** Holds in force, oldest first. Whoever is bound to a project sees the hold of that project alone. */
  listHolds(visibility?: Pick<Visibility, "projectId">): Promise<HoldRecord[]>;
  /** Gives back up to `limit` deliveries that are set aside for a hold that was released. */
  giveBackHeld(limit: number, now: Now): Promise<HoldsGivenBack>;
  /** Deliveries that are set aside for a hold that was released, counted up to `max`. */
  countToGiveBack(max: number): Promise<number>;
}

/** A claim compares each row it meets with every hold. */
export const mostHolds = 100;

export const tooManyHolds = [
  { pointer: "", message: `must not make more than ${mostHolds} holds; release some, or hold everything` },
];

/**
 * `due_at` of a delivery that is set aside is one of these and the number of the hold it is set aside for: `behind` for
 * what a replay queued behind what is live. Later than every instant, and earlier than `blockedAt`: a held head holds
 * its subject.
 */
export const asideAt = { live: 8_000_000_000_000_000, behind: 8_500_000_000_000_000 };
