import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { OutboxStore } from "../../src/store/contract.ts";
import type { PgPool } from "../../src/store/postgres/index.ts";
import type { OpenSqlite } from "../../src/store/sqlite/driver.ts";
import { type CrashMoment, type CrashOrder, type CrashStep, reached } from "./points.ts";

const steps: Readonly<Record<string, CrashStep>> = {
  dispatch: "dispatch",
  claim: "claim",
  record: "record",
  maintain: "prune",
};
const leases = /lease_token = (?!NULL)/;
const writes = /\b(INSERT INTO|UPDATE|DELETE FROM)\b/;

/** Finds the point in the statements that a step gives to the database, and stands still there. */
export class Stop {
  readonly #order: CrashOrder;
  readonly #running = new AsyncLocalStorage<CrashStep>();
  #left: number;

  constructor(order: CrashOrder) {
    this.#order = order;
    this.#left = order.nth;
  }

  /** Everything stands still here, the event loop too, so that nothing else gets done before the kill. */
  at(step: CrashStep, moment: CrashMoment): void {
    if (step !== this.#order.step || moment !== this.#order.moment || --this.#left > 0) return;
    writeSync(1, reached);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }

  during<T>(step: CrashStep, work: () => T): T {
    return this.#running.run(step, work);
  }

  /** The store, whose statements are then known to be those of a step. */
  store(store: OutboxStore): OutboxStore {
    return this.#marked(store, (name) => steps[name], {
      replays: this.#marked(store.replays, () => "replay"),
    });
  }

  pool(pool: PgPool): PgPool {
    return {
      query: (statement, values) => {
        const text = typeof statement === "string" ? statement : statement.text;
        const run = () => pool.query(statement, values);
        // Of a claim only the statement that leases rows counts, and that it was done when it leased some.
        return this.#running.getStore() === "claim"
          ? this.#around(text, leases.test(text), run, ({ rows }) =>
              rows.some(({ id }) => typeof id === "string"),
            )
          : this.#around(text, writes.test(text), run);
      },
      connect: async () => {
        const client = await pool.connect();
        return {
          query: (text, values) => this.#around(text, text === "COMMIT", () => client.query(text, values)),
          release: (error) => client.release(error),
          on: (event, listener) => client.on?.(event, listener),
          off: (event, listener) => client.off?.(event, listener),
        };
      },
      on: (event, listener) => pool.on?.(event, listener),
      off: (event, listener) => pool.off?.(event, listener),
    };
  }

  readonly openSqlite: OpenSqlite = (path, { readonly }) => {
    const handle = new DatabaseSync(path, { readOnly: readonly });
    const around = <T>(text: string, run: () => T): T => {
      const takesEffect = text === "COMMIT";
      this.#mark(text, takesEffect, "before");
      const result = run();
      this.#mark(text, takesEffect, "after");
      return result;
    };
    return {
      exec: (sql) => around(sql, () => handle.exec(sql)),
      prepare: (sql) => {
        const statement = handle.prepare(sql);
        return {
          all: (...params) => around(sql, () => statement.all(...params)),
          run: (...params) => around(sql, () => statement.run(...params)),
        };
      },
      close: () => handle.close(),
    };
  };

  async #around<T>(
    text: string,
    takesEffect: boolean,
    run: () => Promise<T>,
    hadEffect: (result: T) => boolean = () => true,
  ): Promise<T> {
    this.#mark(text, takesEffect, "before");
    const result = await run();
    this.#mark(text, takesEffect && hadEffect(result), "after");
    return result;
  }

  #mark(text: string, takesEffect: boolean, moment: CrashMoment): void {
    const step = this.#running.getStore();
    if (step === undefined) return;
    // A migration is one transaction of many statements: it is killed between any two of them.
    const amid = step === "migrate" && moment === "before" && /\b(CREATE|ALTER|INSERT)\b/.test(text);
    if (takesEffect || amid) this.at(step, moment);
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
