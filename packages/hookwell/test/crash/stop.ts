import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import type { OutboxStore } from "../../src/store/contract.ts";
import { type CrashMoment, type CrashOrder, type CrashStep, reached } from "./points.ts";
import type { Statement, Watch } from "./watch.ts";

const steps: Readonly<Record<string, CrashStep>> = {
  dispatch: "dispatch",
  claim: "claim",
  record: "record",
  maintain: "prune",
};
const leases = /lease_token = (?!NULL)/;
const writes = /\b(INSERT INTO|UPDATE|DELETE FROM)\b/;

/**
 * Reports that the process is where it should be killed, and stands still: the event loop too, so that nothing else
 * gets done and what the database has been told is all that it is ever told.
 */
export function standStill(): void {
  writeSync(1, reached);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300_000);
  // Nobody is left who would kill it.
  process.exit(1);
}

/** Finds the point in the statements that a step gives to the database, and stands still there. */
export class Stop {
  readonly #order: CrashOrder;
  readonly #running = new AsyncLocalStorage<CrashStep>();
  #left: number;
  /** Of a claim only what leases rows counts, and the transaction that has done so. */
  #leasing = false;

  constructor(order: CrashOrder) {
    this.#order = order;
    this.#left = order.nth;
  }

  at(step: CrashStep, moment: CrashMoment): void {
    if (step === this.#order.step && moment === this.#order.moment && --this.#left <= 0) standStill();
  }

  during<T>(step: CrashStep, work: () => T): T {
    return this.#running.run(step, work);
  }

  /** The store, whose statements are then known to be those of a step. */
  store(store: OutboxStore): OutboxStore {
    return this.#marked(store, (name) => steps[name], {
      replays: this.#marked(store.replays, () => "replay"),
      // A dispatch leases what the worker beside it has room for. To come to a claim it is told of no room, as where
      // another process dispatches.
      ...(this.#order.step === "claim" && {
        dispatch: (items, now) => this.during("dispatch", () => store.dispatch(items, now)),
      }),
    });
  }

  readonly watch: Watch = {
    before: (statement) => {
      const step = this.#running.getStore();
      if (step === undefined) return;
      // A migration is one transaction of many statements: it is killed between any two of them.
      const amid = step === "migrate" && /\b(CREATE|ALTER|INSERT)\b/.test(statement.text);
      if (amid || this.#takesEffect(step, statement)) this.at(step, "before");
    },
    after: (statement, rows) => {
      const step = this.#running.getStore();
      if (step === undefined) return;
      this.#leasing ||= !statement.alone && leases.test(statement.text);
      if (!this.#takesEffect(step, statement)) return;
      // A claim of one statement leased something when it answers rows.
      if (step === "claim" && statement.alone && !rows.some(({ id }) => typeof id === "string")) return;
      this.at(step, "after");
    },
  };

  #takesEffect(step: CrashStep, { text, alone }: Statement): boolean {
    if (step !== "claim") return alone ? writes.test(text) : text === "COMMIT";
    return alone ? leases.test(text) : text === "COMMIT" && this.#leasing;
  }

  #marked<T extends object>(
    target: T,
    stepOf: (name: string) => CrashStep | undefined,
    replaced: Partial<T> = {},
  ): T {
    return new Proxy(target, {
      get: (object, name) => {
        if (name in replaced) return replaced[name as keyof T];
        const member: unknown = Reflect.get(object, name, object);
        const step = typeof name === "string" ? stepOf(name) : undefined;
        if (typeof member !== "function") return member;
        const call = (...given: unknown[]): unknown => Reflect.apply(member, object, given);
        return step === undefined ? call : (...given: unknown[]) => this.during(step, () => call(...given));
      },
    });
  }
}
