import { StorageError } from "../../model/errors.ts";
import type { Timers } from "../../model/timers.ts";
import type { Journal } from "./journal.ts";
import type { Rng } from "./random.ts";
import type { Cancel, VirtualTime } from "./virtual-time.ts";

/** What a process that is being killed throws at itself; nobody outside of it ever sees it. */
class Crashed extends Error {}

/** A time in which something was wrong with a process. */
export interface Trouble {
  readonly from: number;
  readonly until: number;
}

/** What is to happen to a process at a point that it comes by. */
export interface Ambush {
  readonly point: string;
  /** Only there, where a point has places (the receiver of a send). */
  readonly where?: unknown;
  /** It comes by so often before. */
  skip: number;
  readonly strike: () => void;
}

/**
 * One life of one process of the application. All it knows of the world goes through here: time, calls of its
 * store, statements, answers of the network. When it has crashed, nothing of that ever comes back, so none of its
 * promises resolves and no code of it runs on.
 */
export class SimProcess {
  readonly name: string;
  alive = true;
  /** The operation whose statements run at the moment. */
  operation = "open";
  /** When it was frozen, when its store failed it, and when it died. */
  readonly troubles: Trouble[] = [];
  readonly #time: VirtualTime;
  readonly #rng: Rng;
  readonly #journal: Journal;
  readonly #onCrash = new Set<() => void>();
  #stalledUntil = 0;
  #ambush: Ambush | undefined;
  #storeDownUntil = 0;
  #ambiguous = false;
  #failStatementIn = 0;

  constructor(name: string, time: VirtualTime, rng: Rng, journal: Journal) {
    this.name = name;
    this.#time = time;
    this.#rng = rng;
    this.#journal = journal;
  }

  // --- what is done to it ------------------------------------------------------------------------------------

  /** At once when it is dead already. */
  onCrash(act: () => void): void {
    if (this.alive) this.#onCrash.add(act);
    else act();
  }

  crash(point: string): void {
    if (!this.alive) return;
    this.alive = false;
    this.#trouble(0);
    this.#journal.count("crash", point);
    this.#journal.note(this.name, "is killed", point);
    for (const act of this.#onCrash) act();
  }

  /** In place of an ambush that was laid before. */
  lieInWait(ambush: Ambush): void {
    this.#ambush = ambush;
  }

  /** It did not come by: strikes wherever it is. */
  waitNoMore(ambush: Ambush, strike: () => void): void {
    if (this.#ambush !== ambush) return;
    this.#ambush = undefined;
    strike();
  }

  /** Runs nothing for so long, as a process that is swapped out or a machine that is suspended. */
  stall(ms: number): void {
    this.#stalledUntil = this.#time.now + ms;
    this.#trouble(ms);
    this.#journal.note(this.name, "is frozen for", `${ms} ms`);
  }

  /** Its store answers no call for so long. */
  loseStore(ms: number): void {
    this.#storeDownUntil = this.#time.now + ms;
    this.#trouble(ms);
    this.#journal.note(this.name, "loses its store for", `${ms} ms`);
  }

  /** The next call of its store is carried out, and answered with an error. */
  loseAnswer(): void {
    this.#ambiguous = true;
  }

  /** The `count`th statement from now fails, with an I/O error. */
  failStatement(count: number): void {
    this.#failStatementIn = count;
  }

  /** Nothing of that happens any more, and what lasts ends now. */
  heal(): void {
    this.#ambush = undefined;
    this.#ambiguous = false;
    this.#failStatementIn = 0;
    this.#storeDownUntil = 0;
  }

  // --- what it does ------------------------------------------------------------------------------------------

  /** Does something in `ms`: not at all when it is dead by then, and later when it is frozen. */
  later(ms: number, act: () => void): Cancel {
    let cancel = this.#time.after(ms, () => enter());
    const enter = (): void => {
      if (!this.alive) return;
      const frozen = this.#stalledUntil - this.#time.now;
      if (frozen > 0) cancel = this.#time.after(frozen, enter);
      else act();
    };
    return () => cancel();
  }

  readonly timers: Timers = {
    sleep: (ms, signal) => {
      if (!this.alive) return never();
      if (!(ms > 0) || signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          cancel();
          signal?.removeEventListener("abort", done);
          resolve();
        };
        const cancel = this.later(ms, done);
        signal?.addEventListener("abort", done, { once: true });
      });
    },
  };

  /** One call across a boundary of the process, such as a call of its store: it takes time, and any of it may be its last. */
  call<T>(operation: string, effect: () => Promise<T>): Promise<T> {
    if (!this.alive) return never();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    // What takes no time is not appointed: it goes on at once.
    const answer = (deliver: () => void): void => {
      const ms = this.#latency();
      if (ms > 0 || this.#isFrozen()) this.later(ms, deliver);
      else deliver();
    };
    answer(() => {
      if (this.reaches(`${operation}: before`)) return;
      if (this.#time.now < this.#storeDownUntil) {
        this.#journal.count("fault", "store unreachable");
        answer(() => reject(new StorageError("The simulated store cannot be reached.")));
        return;
      }
      const ambiguous = this.#ambiguous;
      this.#ambiguous = false;
      this.operation = operation;
      effect().then(
        (value) => {
          if (!this.alive || this.reaches(`${operation}: after`)) return;
          if (!ambiguous) return answer(() => resolve(value));
          this.#journal.count("fault", "store answer lost");
          this.#journal.note(this.name, "does not hear what became of", operation);
          this.#trouble(0);
          answer(() => reject(new StorageError("The simulated store's answer was lost.")));
        },
        (error: unknown) => {
          if (this.alive) answer(() => reject(error));
        },
      );
    });
    return promise;
  }

  /** Before each statement on a connection of this process. @throws Crashed, or an I/O error */
  statement(sql: string): void {
    if (!this.alive || this.reaches(`${this.operation}: statement`)) throw new Crashed();
    if (this.#failStatementIn === 0 || /^\s*(ROLLBACK|PRAGMA)/.test(sql) || --this.#failStatementIn > 0)
      return;
    this.#trouble(0);
    this.#journal.count("fault", "statement failed");
    this.#journal.note(this.name, "gets an I/O error at", sql.trim().split("\n")[0]!);
    throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 10 });
  }

  /** Comes by a point; true when that was its end. */
  reaches(point: string, where?: unknown): boolean {
    const ambush = this.#ambush;
    if (ambush?.point !== point || (ambush.where !== undefined && ambush.where !== where)) return false;
    if (ambush.skip-- > 0) return false;
    this.#ambush = undefined;
    ambush.strike();
    return !this.alive;
  }

  #isFrozen(): boolean {
    return this.#stalledUntil > this.#time.now;
  }

  #trouble(ms: number): void {
    this.troubles.push({ from: this.#time.now, until: this.#time.now + ms });
  }

  /** Most calls take next to no time; a few take long. */
  #latency(): number {
    const roll = this.#rng.number();
    return roll < 0.75 ? 0 : roll < 0.98 ? this.#rng.int(1, 4) : this.#rng.int(20, 300);
  }
}

/** What a dead process waits for. */
export function never(): Promise<never> {
  return new Promise(() => {});
}
