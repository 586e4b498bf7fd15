import type { StoreHarness } from "hookwell/testing";
import { afterAll, beforeAll } from "vitest";
import type { Clock } from "../../src/model/clock.ts";
import { idFunc, systemRandom } from "../../src/model/ids.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { memoryHarness, PostgresHarness, sqliteHarness } from "../contract/harnesses.ts";
import { turns } from "./virtual-time.ts";

export interface OpenStore {
  readonly store: OutboxStore;
  /** A second store object on the same data: another process. Memory: the same object. */
  again(): Promise<OutboxStore>;
  /** One statement of somebody with access to the database. */
  sql(text: string): Promise<void>;
  close(): Promise<void>;
}

/** One of the stores, for a promise that all of them keep. Call `use` first in the describe that is about it. */
export interface StoreKind {
  readonly name: string;
  use(): void;
  open(clock: Clock): Promise<OpenStore>;
}

function kindOf(name: string, harness: StoreHarness, use: () => void): StoreKind {
  return {
    name,
    use,
    async open(now) {
      const made = await harness.make({ now, idFunc: idFunc("end_", now, systemRandom) });
      return {
        store: made.store,
        sql: (text) =>
          made.transaction(async ({ adapter, tx }) => {
            await adapter.run(tx, { text, params: [] });
          }),
        again: async () => made.reopen?.() ?? made.store,
        close: () => made.close(),
      };
    },
  };
}

const postgres = new PostgresHarness();

export const memory = kindOf("memory", memoryHarness, () => {});

/** How each SQL store calls a table. */
export const tables: Readonly<Record<string, (name: string) => string>> = {
  SQLite: (name) => `hookwell_${name}`,
  PostgreSQL: (name) => `hookwell.${name}`,
};

export const kinds: readonly StoreKind[] = [
  memory,
  kindOf("SQLite", sqliteHarness, () => {}),
  kindOf("PostgreSQL", postgres, () => {
    beforeAll(() => postgres.start());
    afterAll(() => postgres.stop());
  }),
];

/** The store, and a way to wait until no call of it is under way and nothing new has begun. */
export function tracked<T extends object>(
  target: T,
): { readonly it: T; readonly settle: () => Promise<void> } {
  let busy = 0;
  const wrap = (value: unknown): unknown => {
    if (!(value instanceof Promise)) return value;
    busy++;
    const done = (): void => {
      busy--;
    };
    value.then(done, done);
    return value;
  };
  const handler: ProxyHandler<object> = {
    get(object, name) {
      const member: unknown = Reflect.get(object, name, object);
      // A part of a store has calls of its own.
      if (name === "replays") return new Proxy(member as object, handler);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => wrap(Reflect.apply(member, object, given));
    },
  };
  const it = new Proxy(target, handler) as T;
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 3; ) {
      await turns(4);
      quiet = busy === 0 ? quiet + 1 : 0;
    }
  };
  return { it, settle };
}
