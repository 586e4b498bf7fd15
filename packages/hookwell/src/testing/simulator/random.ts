/** Numbers that follow from a seed alone, on every machine: sfc32. */
export class Rng {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  constructor(seed: string) {
    // FNV-1a spreads the seed; the first numbers of sfc32 after that are thrown away.
    let hash = 0x811c9dc5;
    for (let at = 0; at < seed.length; at++) hash = Math.imul(hash ^ seed.charCodeAt(at), 0x01000193);
    this.#a = hash;
    this.#b = hash ^ 0x9e3779b9;
    this.#c = Math.imul(hash, 0x85ebca6b);
    for (let round = 0; round < 12; round++) this.#next();
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }

  /** From 0 up to, but not including, 1. */
  readonly number = (): number => this.#next() / 2 ** 32;

  /** A whole number, both ends included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.number() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.number() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)]!;
  }

  readonly bytes = (size: number): Uint8Array => {
    const bytes = new Uint8Array(size);
    for (let at = 0; at < size; at++) bytes[at] = this.#next();
    return bytes;
  };
}
