/** Random choices that a seed repeats. */
export interface Dice {
  /** At least 0, below `below`. */
  int(below: number): number;
  /** True in this share of all cases. */
  chance(share: number): boolean;
  /** @throws Error for an empty list */
  pick<T>(list: readonly T[]): T;
  /** One of them, the heavier the more often. */
  weigh<T>(list: readonly (readonly [weight: number, what: T])[]): T;
}

/** Mulberry32. */
export function dice(seed: number): Dice {
  let state = (seed * 0x9e3779b1) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (below: number): number => Math.floor(next() * below);
  const pick = <T>(list: readonly T[]): T => {
    if (list.length === 0) throw new Error("There is nothing to pick from.");
    return list[int(list.length)]!;
  };
  return {
    int,
    pick,
    chance: (share) => next() < share,
    weigh(list) {
      let left = next() * list.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, what] of list) {
        left -= weight;
        if (left < 0) return what;
      }
      return pick(list)[1];
    },
  };
}
