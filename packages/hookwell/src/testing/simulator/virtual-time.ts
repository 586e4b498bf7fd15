interface Entry {
  readonly at: number;
  /** Things of the same instant happen in the order they were asked for. */
  readonly order: number;
  act: (() => void) | undefined;
}

/** Takes an appointment back. */
export type Cancel = () => void;

/**
 * The only time there is in a simulated world, and the only place where anything begins. It stands still while
 * something happens; what follows from it by promises alone has come to rest before the next thing happens.
 */
export class VirtualTime {
  now = Date.parse("2026-03-01T09:00:00.000Z");
  readonly start = this.now;
  #order = 0;
  /** A binary heap by (at, order). */
  readonly #heap: Entry[] = [];

  /** Appoints `act` for `ms` from now, at least: whole milliseconds. */
  after(ms: number, act: () => void): Cancel {
    const entry: Entry = { at: this.now + Math.max(Math.ceil(ms), 0), order: this.#order++, act };
    this.#push(entry);
    return () => {
      entry.act = undefined;
    };
  }

  /** Lets everything happen that is appointed until then, and whatever that appoints. */
  runUntil(end: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        let act: (() => void) | undefined;
        while (!act && this.#heap.length > 0 && this.#heap[0]!.at <= end) {
          const entry = this.#pop();
          act = entry.act;
          if (act) this.now = entry.at;
        }
        if (!act) {
          this.now = Math.max(this.now, end);
          resolve();
          return;
        }
        try {
          act();
        } catch (error) {
          reject(error);
          return;
        }
        afterPromises(turn);
      };
      setImmediate(turn);
    });
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

/**
 * Runs `act` when every promise that is ready has run. The tick queue comes when no microtask is left; an immediate
 * would as well, but costs a round of the event loop, which asks the system for I/O that nobody here waits for.
 */
function afterPromises(act: () => void): void {
  queueMicrotask(() => process.nextTick(act));
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
