import type { Terminal } from "../command.ts";

const redrawMs = 100;
const noteMs = 10_000;
const barWidth = 24;

/**
 * Tells on standard error how far a long work is: a bar in a terminal, elsewhere a line now and then. `total` absent =
 * nobody knows how much there is.
 */
export class Progress {
  readonly #terminal: Terminal;
  readonly #what: string;
  readonly #clock: () => number;
  #last: number;
  #drawn = false;

  /** `what` is counted: "deliveries queued". `clock`: milliseconds, for tests. */
  constructor(terminal: Terminal, what: string, clock: () => number = () => performance.now()) {
    this.#terminal = terminal;
    this.#what = what;
    this.#clock = clock;
    this.#last = clock();
  }

  update(done: number, total?: number): void {
    const now = this.#clock();
    const { redraw } = this.#terminal;
    if (this.#drawn || !redraw ? now - this.#last < (redraw ? redrawMs : noteMs) : false) return;
    this.#last = now;
    this.#drawn = true;
    const counted = total === undefined ? String(done) : `${done} of ${total}`;
    if (redraw) redraw.call(this.#terminal, `${bar(done, total)}${counted} ${this.#what}`);
    else this.#terminal.note(`${counted} ${this.#what} …`);
  }

  /** Takes the bar away, before something else is said. */
  end(): void {
    if (this.#drawn) this.#terminal.redraw?.("");
    this.#drawn = false;
  }
}

function bar(done: number, total: number | undefined): string {
  if (total === undefined || total <= 0) return "";
  const part = Math.min(1, done / total);
  const full = Math.round(part * barWidth);
  return `[${"#".repeat(full)}${"-".repeat(barWidth - full)}] ${Math.floor(part * 100)} %  `;
}
