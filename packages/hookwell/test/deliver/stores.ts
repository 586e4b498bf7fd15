import type { Clock } from "../../src/model/clock.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { MemoryOutbox } from "../../src/store/memory/memory-outbox.ts";
import { turns } from "./virtual-time.ts";

export interface OpenStore {
  readonly store: OutboxStore;
  /** A second store object on the same data: another process. Memory: the same object. */
  again(): Promise<OutboxStore>;
  close(): Promise<void>;
}

export interface StoreKind {
  readonly name: string;
  open(clock: Clock): Promise<OpenStore>;
}

export const memory: StoreKind = {
  name: "memory",
  async open(clock) {
    const store = new MemoryOutbox({ now: clock });
    await store.open();
    return { store, again: async () => store, close: () => store.close() };
  },
};

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
  const it = new Proxy(target, {
    get(object, name) {
      const member: unknown = Reflect.get(object, name, object);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => wrap(Reflect.apply(member, object, given));
    },
  });
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 3; ) {
      await turns(4);
      quiet = busy === 0 ? quiet + 1 : 0;
    }
  };
  return { it, settle };
}

/** Every store there is, for promises that all of them keep. */
export const kinds: readonly StoreKind[] = [memory];
