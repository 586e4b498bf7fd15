/**
 * Names for rows of counts: each is held by one transaction at a time. Two processes never share one, since the
 * beginning is random, and two transactions of one process neither.
 */
export class Slots {
  readonly #base: string;
  readonly #taken = new Set<number>();

  constructor(base: string) {
    this.#base = base;
  }

  /** Runs `work` with a slot of its own: the lowest that is free, so that there are as few as there is company. */
  async use<T>(work: (slot: string) => Promise<T>): Promise<T> {
    let place = 0;
    while (this.#taken.has(place)) place++;
    this.#taken.add(place);
    try {
      return await work(`${this.#base}-${place}`);
    } finally {
      this.#taken.delete(place);
    }
  }
}
