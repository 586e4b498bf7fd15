import { nodeSqlite } from "../../adapters/node-sqlite.ts";
import { createHookwell } from "../../publish/create-hookwell.ts";
import { defineEvents } from "../../publish/define-events.ts";
import type { HookwellOptions } from "../../publish/options.ts";
import type { HookwellCore } from "../../publish/surface.ts";
import type { OutboxStore } from "../../store/contract.ts";
import { MemoryOutbox } from "../../store/memory/memory-outbox.ts";
import { memoryTx } from "../../store/memory/transaction.ts";
import { sqliteStore } from "../../store/sqlite/index.ts";
import { type Disk, encryptionKeys } from "./disk.ts";
import { never, type SimProcess } from "./process.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** What the simulated application publishes. */
export interface Data {
  readonly order: string;
  readonly amount: number;
}

const anything = {
  "~standard": { version: 1, vendor: "simulator", validate: (value: unknown) => ({ value: value as Data }) },
} as const;
const jsonSchema = { type: "object" };
export const paymentDelays = [1_000, 4_000, 10_000];

/**
 * Orders have a subject and revisions; the deliveries of payments are made in capture, and they have a retry policy
 * of their own; notes are what nobody in particular waits for.
 */
export const events = defineEvents({
  "order.changed": { schema: anything, jsonSchema },
  "payment.made": { schema: anything, jsonSchema, fanOut: "emit", retry: paymentDelays },
  "note.added": { schema: anything, jsonSchema },
});
export type EventType = "order.changed" | "payment.made" | "note.added";

/** What somebody asks the application to do. */
export interface Wish {
  /** The event's id; absent = Hookwell makes one. A wish that is repeated has one. */
  readonly id?: string;
  readonly type: EventType;
  readonly order: string;
  readonly amount: number;
}

export interface Work {
  readonly wishes: readonly Wish[];
  /** The application throws at the end. */
  readonly rollsBack: boolean;
  /** How long the transaction stays open before it commits, in ms. */
  readonly openMs: number;
}

/** A change that the application committed, and what its event must say. */
export interface Change {
  readonly eventId: string;
  readonly type: EventType;
  readonly subject?: string;
  readonly revision?: number;
  readonly data: Data;
}

export interface Committed extends Change {
  readonly begunAt: number;
  readonly committedAt: number;
}

export class RolledBack extends Error {}

/** An application with its database. Its processes come and go; what it committed stays. */
export interface Application {
  readonly storeName: "memory" | "sqlite";
  /** Starts a process of it on the given store: its Hookwell, and how it makes a transaction. */
  launch(process: SimProcess, options: LaunchOptions): Launched;
  /** Everything that was committed, in that order. */
  committed(): readonly Committed[];
  /** When the write lock was held across other work. */
  readonly locks: { readonly from: number; until: number }[];
}

export interface LaunchOptions {
  /** Puts the boundary of the process, and planted faults, around its store. */
  readonly around: (store: OutboxStore) => OutboxStore;
  readonly hookwell: Omit<
    HookwellOptions<undefined, never, "optional">,
    "store" | "tx" | "events" | "tenants"
  >;
  /** A planted fault: events are written before the transaction, in one of their own. */
  readonly emitsOutside: boolean;
}

export interface Launched {
  readonly hooks: HookwellCore<never>;
  /** Rejects when it was rolled back, or when nobody knows. */
  transact(work: Work): Promise<void>;
}

/** Facts for `emit`. */
function factsOf({ subject, revision }: Change): { readonly subject?: string; readonly revision?: number } {
  return { ...(subject !== undefined && { subject }), ...(revision !== undefined && { revision }) };
}

function changeOf(wish: Wish, eventId: string, revisionOf: (order: string) => number): Change {
  const { type, order, amount } = wish;
  const data = { order, amount };
  if (type !== "order.changed") return { eventId, type, data };
  return { eventId, type, subject: `order:${order}`, revision: revisionOf(order) + 1, data };
}

/** On SQLite: one file, a connection of its own for each transaction. */
export class SqliteApplication implements Application {
  readonly storeName = "sqlite";
  readonly locks: { readonly from: number; until: number }[] = [];
  readonly #disk: Disk;
  readonly #time: VirtualTime;
  readonly #committed: Committed[] = [];

  constructor(disk: Disk, time: VirtualTime) {
    this.#disk = disk;
    this.#time = time;
    disk.format();
  }

  launch(process: SimProcess, { around, hookwell, emitsOutside }: LaunchOptions): Launched {
    const { clock, timers, randomNumber, logger } = hookwell;
    const store = sqliteStore({
      path: this.#disk.path,
      encryptionKeys,
      open: (path) => this.#disk.open(process, path),
      idFunc: sequence(`end_${process.name}_`),
      ...(clock && { now: clock }),
      ...(timers && { timers }),
      ...(randomNumber && { randomNumber }),
      ...(logger && { logger }),
    });
    const hooks = createHookwell({ ...hookwell, store: around(store), tx: nodeSqlite(), events });
    const write = (tx: ReturnType<Disk["open"]>, wish: Wish, staged: Change[]): void => {
      const [known] = wish.id
        ? tx.prepare("SELECT facts FROM app_change WHERE event_id = ?").all(wish.id)
        : [];
      const change = known
        ? (JSON.parse((known as { facts: string }).facts) as Change)
        : changeOf(wish, wish.id ?? "", (order) => {
            const [row] = tx.prepare("SELECT revision FROM app_order WHERE id = ?").all(order);
            return (row as { revision: number } | undefined)?.revision ?? 0;
          });
      const given = { ...factsOf(change), ...(wish.id && { id: wish.id }) };
      const { id } =
        emitsOutside && wish.type === "payment.made"
          ? { id: wish.id! }
          : hooks.emitSync(wish.type, change.data, { ...given, tx });
      if (known) return;
      const made = { ...change, eventId: id };
      if (change.revision !== undefined)
        tx.prepare(
          "INSERT INTO app_order VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET revision = excluded.revision",
        ).run(wish.order, change.revision);
      tx.prepare("INSERT INTO app_change VALUES (?, ?)").run(id, JSON.stringify(made));
      staged.push(made);
    };
    const transact = async ({ wishes, rollsBack, openMs }: Work): Promise<void> => {
      if (emitsOutside) for (const wish of wishes) await emitOutside(hooks, wish);
      return process.call("transaction", async () => {
        const begunAt = this.#time.now;
        const staged: Change[] = [];
        const tx = openMs === 0 ? this.#disk.open(process) : this.#disk.openAlone(process);
        tx.onCommit = () => this.#commit(staged, begunAt);
        const all = (): void => {
          for (const wish of wishes) write(tx, wish, staged);
          if (rollsBack) throw new RolledBack();
        };
        try {
          if (openMs === 0) hooks.transaction(tx, all);
          else await this.#openFor(openMs, process, tx, all);
        } finally {
          if (process.alive) tx.close();
        }
      });
    };
    return { hooks: hooks as unknown as HookwellCore<never>, transact };
  }

  /** A transaction that an application keeps open over an await, which locks everybody else out. */
  async #openFor(
    ms: number,
    process: SimProcess,
    tx: ReturnType<Disk["open"]>,
    work: () => void,
  ): Promise<void> {
    const lock = { from: this.#time.now, until: this.#time.now };
    const release = (): void => {
      lock.until = this.#time.now;
    };
    this.locks.push(lock);
    process.onCrash(release);
    try {
      tx.exec("BEGIN IMMEDIATE");
      work();
      await process.timers.sleep(ms);
      process.operation = "transaction";
      tx.exec("COMMIT");
    } finally {
      release();
    }
  }

  #commit(staged: readonly Change[], begunAt: number): void {
    for (const change of staged) this.#committed.push({ ...change, begunAt, committedAt: this.#time.now });
  }

  committed(): readonly Committed[] {
    return this.#committed;
  }
}

/** In memory: one MemoryOutbox as the database server of all processes, the application's own state beside it. */
export class MemoryApplication implements Application {
  readonly storeName = "memory";
  readonly locks: [] = [];
  readonly #time: VirtualTime;
  readonly #store: MemoryOutbox;
  readonly #committed: Committed[] = [];
  readonly #revisions = new Map<string, number>();

  constructor(time: VirtualTime) {
    this.#time = time;
    this.#store = new MemoryOutbox({ now: () => new Date(time.now), idFunc: sequence("end_") });
  }

  launch(process: SimProcess, { around, hookwell, emitsOutside }: LaunchOptions): Launched {
    const store = around(this.#store);
    const hooks = createHookwell({ ...hookwell, store, tx: memoryTx(), events });
    const transact = async ({ wishes, rollsBack, openMs }: Work): Promise<void> => {
      if (emitsOutside) for (const wish of wishes) await emitOutside(hooks, wish);
      return process.call("transaction", async () => {
        const begunAt = this.#time.now;
        const staged: Change[] = [];
        await this.#store.transaction(async (tx) => {
          for (const wish of wishes) {
            const known = this.#committed.find(({ eventId }) => eventId === wish.id);
            const change = known ?? changeOf(wish, wish.id ?? "", (order) => this.#revisionOf(order, staged));
            const given = { ...factsOf(change), ...(wish.id && { id: wish.id }) };
            const { id } =
              emitsOutside && wish.type === "payment.made"
                ? { id: wish.id! }
                : await hooks.emit(wish.type, change.data, { ...given, tx });
            if (!known) staged.push({ ...change, eventId: id });
          }
          await process.timers.sleep(openMs);
          if (rollsBack) throw new RolledBack();
          if (process.reaches("transaction: before commit")) await never();
        });
        for (const change of staged) {
          if (change.revision !== undefined) this.#revisions.set(change.data.order, change.revision);
          this.#committed.push({ ...change, begunAt, committedAt: this.#time.now });
        }
      });
    };
    return { hooks: hooks as unknown as HookwellCore<never>, transact };
  }

  #revisionOf(order: string, staged: readonly Change[]): number {
    const own = staged.findLast(({ data, revision }) => data.order === order && revision !== undefined);
    return own?.revision ?? this.#revisions.get(order) ?? 0;
  }

  committed(): readonly Committed[] {
    return this.#committed;
  }
}

/** The planted fault: the event of a payment is written before its transaction begins. */
async function emitOutside(
  hooks: Pick<HookwellCore, "emitUnknown">,
  { id, type, order, amount }: Wish,
): Promise<void> {
  if (type === "payment.made")
    await hooks.emitUnknown(type, { order, amount }, { tx: "own", ...(id && { id }) });
}

/** Numbers ids; the product's own generator reads the runtime's randomness. */
function sequence(prefix: string): () => string {
  let count = 0;
  return () => `${prefix}${++count}`;
}
