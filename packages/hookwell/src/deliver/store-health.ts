import type { Observer } from "../model/observe.ts";
import type { Random } from "../model/random.ts";
import { errorText } from "./decide.ts";

const firstBackoffMs = 100;
const longestBackoffMs = 5_000;

/** Whether one loop reaches its store: says once when it is lost, once when it is regained. */
export class StoreHealth {
  readonly #loop: string;
  readonly #observe: Observer;
  readonly #random: Random;
  #failures = 0;

  constructor(loop: string, observe: Observer, random: Random) {
    this.#loop = loop;
    this.#observe = observe;
    this.#random = random;
  }

  get lost(): boolean {
    return this.#failures > 0;
  }

  /** Notes a failure and answers how long to leave the store alone, in ms. */
  failed(error: unknown): number {
    if (this.#failures++ === 0) this.#observe("storeLost", { loop: this.#loop, error: errorText(error) });
    const step = Math.min(firstBackoffMs * 2 ** Math.min(this.#failures - 1, 10), longestBackoffMs);
    return step * (0.5 + this.#random() / 2);
  }

  reached(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#observe("storeRegained", { loop: this.#loop });
  }
}
