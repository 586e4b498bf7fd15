import type { VirtualTime } from "./virtual-time.ts";

/** What is counted: how often each crash point, fault and promise was exercised. */
export type Kind = "crash" | "fault" | "promise" | "done";

/** The counts of one run, or of many. */
export class Tally {
  readonly counts = new Map<string, number>();

  add(kind: Kind, name: string, count = 1): void {
    const key = `${kind}\t${name}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + count);
  }

  of(kind: Kind, name: string): number {
    return this.counts.get(`${kind}\t${name}`) ?? 0;
  }

  merge(counts: Iterable<readonly [string, number]>): void {
    for (const [key, count] of counts) this.counts.set(key, (this.counts.get(key) ?? 0) + count);
  }
}

/** What one run leaves behind: counts always, and every step in words when a trace is wanted. */
export class Journal {
  readonly tally = new Tally();
  readonly trace: string[] = [];
  readonly #time: VirtualTime;
  readonly traced: boolean;

  constructor(time: VirtualTime, traced: boolean) {
    this.#time = time;
    this.traced = traced;
  }

  count(kind: Kind, name: string, count = 1): void {
    this.tally.add(kind, name, count);
  }

  note(who: string, ...words: (string | number | undefined)[]): void {
    if (!this.traced) return;
    const at = ((this.#time.now - this.#time.start) / 1_000).toFixed(3).padStart(8);
    this.trace.push(`${at}  ${who.padEnd(10)} ${words.filter((word) => word !== undefined).join(" ")}`);
  }
}
