/** How long claims wait at most for a dispatch that claims: it may wait itself, for a lane that a transaction locks. */
const longestDispatchMs = 1_000;

export interface DispatchTurn {
  /** When it was taken, by the steady clock. */
  readonly since: number;
  /** False = it lasted too long, and claims went on. */
  kept(): boolean;
  /** True = a claim was asked for meanwhile. */
  end(): boolean;
}

/**
 * Whose turn it is to claim for one worker: the worker itself, or a dispatch that claims what it makes. One at a time, or
 * both would fill the same slots.
 */
export class ClaimTurn {
  readonly #monotonic: () => number;
  #taken = false;
  /** The dispatch that has the turn, while claims wait for it. */
  #dispatch: DispatchTurn | undefined;
  /** A claim was asked for while a dispatch had the turn. */
  #refused = false;
  readonly #onFree: (() => void)[] = [];

  /** @param monotonic a steady clock in ms */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** For a claim. False = somebody else has the turn. */
  take(): boolean {
    if (this.#dispatch && this.#monotonic() - this.#dispatch.since >= longestDispatchMs) {
      this.#dispatch = undefined;
      this.#taken = false;
    }
    this.#refused ||= this.#taken;
    if (this.#taken) return false;
    this.#taken = true;
    return true;
  }

  /** The claim is over. */
  end(): void {
    this.#taken = false;
    for (const resolve of this.#onFree.splice(0)) resolve();
  }

  get taken(): boolean {
    return this.#taken;
  }

  /** Resolves when it is given back; by then somebody else may have taken it. */
  freed(): Promise<void> {
    return new Promise((resolve) => this.#onFree.push(resolve));
  }

  /** For a dispatch, when it is not taken. */
  takeForDispatch(): DispatchTurn {
    const since = this.#monotonic();
    const kept = (): boolean => this.#dispatch === turn;
    const turn: DispatchTurn = {
      since,
      kept,
      end: () => {
        if (!kept()) return false;
        this.#dispatch = undefined;
        this.end();
        const wanted = this.#refused;
        this.#refused = false;
        return wanted;
      },
    };
    this.#dispatch = turn;
    this.#taken = true;
    return turn;
  }
}
