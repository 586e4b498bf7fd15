import { createHash } from "node:crypto";
import { Loops, type LoopsConfig } from "../../src/deliver/loops.ts";
import { Dispatcher, type DispatcherConfig } from "../../src/dispatch/dispatcher.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import type { CaptureInput } from "../../src/model/event.ts";
import type { ObservedEvents, Observer } from "../../src/model/observe.ts";
import type { NewSubscription } from "../../src/model/subscription.ts";
import { DeliveryError, SendAbortedError, type Sender, type SendOptions } from "../../src/send/sender.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { memory, type StoreKind, tracked } from "./stores.ts";
import { VirtualTime } from "./virtual-time.ts";

/** What a fake endpoint answers: a status, a network error code, or nothing until it is aborted. */
export type FakeAnswer =
  | number
  | "hang"
  | "connect_refused"
  | "reset"
  | "timeout"
  | { status: number; retryAfterMs: number };

export interface Sent {
  readonly delivery: Delivery;
  readonly at: Date;
}

/** A sender over endpoints that answer as the test says. Everything sent is kept. */
export class FakeSender implements Sender {
  readonly sent: Sent[] = [];
  inFlight = 0;
  mostInFlight = 0;
  readonly #time: VirtualTime;
  readonly #answer: (delivery: Delivery, index: number) => FakeAnswer | Promise<FakeAnswer>;

  constructor(
    time: VirtualTime,
    answer: (delivery: Delivery, index: number) => FakeAnswer | Promise<FakeAnswer> = () => 200,
  ) {
    this.#time = time;
    this.#answer = answer;
  }

  async deliver(delivery: Delivery, { signal }: SendOptions = {}): ReturnType<Sender["deliver"]> {
    const startedAt = this.#time.clock();
    this.sent.push({ delivery, at: startedAt });
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    try {
      const answer = await this.#answer(delivery, this.sent.length - 1);
      const details = { startedAt, durationMs: 3 };
      if (answer === "hang") {
        await new Promise<void>((resolve) =>
          signal?.addEventListener("abort", () => resolve(), { once: true }),
        );
        throw new SendAbortedError(delivery.id);
      }
      if (typeof answer === "string") throw new DeliveryError(answer, `no answer: ${answer}`, details);
      const statusCode = typeof answer === "number" ? answer : answer.status;
      if (statusCode >= 200 && statusCode < 300) return { ...details, statusCode };
      throw new DeliveryError(`http_${statusCode}`, `answered with status ${statusCode}`, {
        ...details,
        statusCode,
        ...(typeof answer === "object" ? { retryAfterMs: answer.retryAfterMs } : {}),
      });
    } finally {
      this.inFlight--;
    }
  }

  /** How often each delivery was sent, by event and subscription. */
  counts(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { delivery } of this.sent) {
      const key = `${delivery.eventId} ${delivery.subscriptionId}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  }

  to(subscriptionId: string): Sent[] {
    return this.sent.filter(({ delivery }) => delivery.subscriptionId === subscriptionId);
  }
}

/** Everything that was observed, by name. */
export class Observed {
  readonly all: { readonly name: keyof ObservedEvents; readonly event: unknown }[] = [];
  readonly observe: Observer = (name, event) => {
    this.all.push({ name, event });
  };

  of<Name extends keyof ObservedEvents>(name: Name): ObservedEvents[Name][] {
    return this.all
      .filter((entry) => entry.name === name)
      .map((entry) => entry.event as ObservedEvents[Name]);
  }
}

/** One store on virtual time, with what it takes to run loops over it. */
export class World {
  readonly time: VirtualTime;
  readonly store: OutboxStore;
  readonly observed = new Observed();
  readonly again: () => Promise<OutboxStore>;
  readonly sql: (text: string) => Promise<void>;
  readonly close: () => Promise<void>;
  readonly #settles: (() => Promise<void>)[];
  readonly #loops: Loops[] = [];

  private constructor(
    time: VirtualTime,
    store: ReturnType<typeof tracked<OutboxStore>>,
    rest: Pick<World, "again" | "sql" | "close">,
  ) {
    this.time = time;
    this.store = store.it;
    this.#settles = [store.settle];
    this.sql = rest.sql;
    this.again = async () => this.track(await rest.again());
    this.close = async () => {
      const stopped = Promise.all(this.#loops.map((loops) => loops.stop({ graceMs: 0 })));
      // Senders of a test may not heed the abort; on virtual time patience costs nothing.
      await this.advance(5_000);
      await stopped;
      await rest.close();
    };
  }

  static async open(kind: StoreKind = memory): Promise<World> {
    const time = new VirtualTime();
    const opened = await kind.open(time.clock);
    return new World(time, tracked(opened.store), opened);
  }

  /** Over a store that the test made itself, on `time`. */
  static over(time: VirtualTime, store: OutboxStore): World {
    const missing = (): Promise<never> => Promise.reject(new Error("not of this world"));
    return new World(time, tracked(store), { again: missing, sql: missing, close: () => store.close() });
  }

  /** Counts the calls of an object, so that `settle` waits for them. */
  track<T extends object>(target: T): T {
    const { it, settle } = tracked(target);
    this.#settles.push(settle);
    return it;
  }

  /** Resolves when no tracked call is under way and none has followed. */
  readonly settle = async (): Promise<void> => {
    for (let round = 0; round < 2; round++) for (const settle of this.#settles) await settle();
  };

  advance(ms: number): Promise<void> {
    return this.time.advance(ms, this.settle);
  }

  /** Time passes in hops, each with a look at its end: for long waits, in which every poll would show nothing. */
  async later(ms: number): Promise<void> {
    const hops = Math.ceil(ms / 25_000);
    for (let hop = 0; hop < hops; hop++) {
      this.time.skip(Math.max(ms / hops - 1_300, 0));
      await this.advance(Math.min(ms / hops, 1_300));
    }
  }

  dispatcher(config: Partial<DispatcherConfig> = {}): Dispatcher {
    return new Dispatcher({
      store: this.store,
      clock: this.time.clock,
      virtualTime: true,
      observe: this.observed.observe,
      timers: this.time,
      ...config,
    });
  }

  /** Parts that every loop of this world takes. */
  parts(sender: Sender): LoopsConfig {
    return {
      store: this.store,
      sender,
      policy: { maxAttempts: 3, baseDelay: 10_000, maxDelay: 60_000 },
      clock: this.time.clock,
      virtualTime: true,
      random: () => 0.5,
      timers: this.time,
      monotonic: this.time.monotonic,
      observe: this.observed.observe,
      retention: null,
    };
  }

  /** Dispatcher and worker, running; stopped when the world closes. */
  start(sender: Sender, config: Partial<LoopsConfig> = {}): Loops {
    const loops = new Loops({ ...this.parts(sender), dispatcher: this.dispatcher(), ...config });
    this.#loops.push(loops);
    return loops;
  }

  /** A worker that is dead: nobody waits for its loops to stop. */
  forget(loops: Loops): void {
    this.#loops.splice(this.#loops.indexOf(loops), 1);
  }

  async subscribe(id: string, changes: Partial<NewSubscription> = {}): Promise<void> {
    await this.store.createSubscription(
      { kind: "own" },
      {
        id,
        projectId: "live",
        url: `https://${id}.example/hook`,
        secret: `secret of ${id}`,
        eventTypes: [],
        ordering: "none",
        ...changes,
      },
    );
  }

  async capture(...events: readonly (Partial<CaptureInput> & { readonly id: string })[]): Promise<void> {
    await this.store.capture(
      { kind: "own" },
      events.map((event) => this.event(event)),
    );
  }

  event({ id, ...changes }: Partial<CaptureInput> & { readonly id: string }): CaptureInput {
    const data = changes.data ?? JSON.stringify({ number: id });
    return {
      id,
      projectId: "live",
      type: "thing.made",
      occurredAt: this.time.clock(),
      route: "*",
      contentHash: createHash("sha256").update(data).digest("hex"),
      ...changes,
      data,
    };
  }

  /** The deliveries as management shows them. */
  async deliveries(filter: Parameters<OutboxStore["listDeliveries"]>[0] = {}) {
    return (await this.store.listDeliveries(filter, { limit: 100 })).items;
  }
}

export function names(from: number, to: number, prefix = "evt_"): string[] {
  return Array.from({ length: to - from }, (_, index) => `${prefix}${String(from + index).padStart(4, "0")}`);
}
