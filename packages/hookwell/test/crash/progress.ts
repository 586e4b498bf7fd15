/** Says on standard error how far a run is and how long it may go on, over one line in a terminal. */
export class Progress {
  readonly #total: number;
  readonly #started = performance.now();
  #done = 0;

  /** `total`: what all of it costs, in any unit. */
  constructor(total: number) {
    this.#total = total;
  }

  /** A part of that cost is done; `what` goes on. */
  add(cost: number, what: string): void {
    this.#done += cost;
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}; ${this.left()}`);
  }

  /** Makes room for a line that stays. */
  clear(): void {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  }

  /** From what the part that is done has taken. */
  left(): string {
    const minutes = ((performance.now() - this.#started) / 60_000) * (this.#total / this.#done - 1);
    if (!Number.isFinite(minutes)) return "no estimate yet";
    return minutes < 1 ? "less than a minute left" : `about ${Math.ceil(minutes)} min left`;
  }
}
