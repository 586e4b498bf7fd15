import type { Postgres } from "../postgres.ts";
import type { Redis } from "../redis.ts";

export interface World {
  readonly postgres: Postgres;
  readonly redis: Redis | undefined;
  /** Of the receiver: http://127.0.0.1:port. */
  readonly origin: string;
  /** For files, on a real disk. */
  readonly directory: string;
}

export interface Shape {
  readonly subscriptions: number;
  /** Size of the event's data. */
  readonly bodyBytes: number;
}

/** What a worker process is given; it crosses a process boundary, so it is plain data. */
export interface WorkConfig extends Shape {
  readonly contestant: string;
  readonly origin: string;
  /** Connection string or file. */
  readonly storage: string;
  /** Another process emits, so the worker must be told of it. */
  readonly listens?: boolean;
}

/** The outside of a contestant: makes its storage and gives it work, in the controlling process. */
export interface Side {
  readonly config: WorkConfig;
  /** Makes durable work for so many deliveries; answers for how many (whole events). */
  enqueue(deliveries: number): Promise<number>;
  /** Emits one event to one subscription, in a transaction of its own; answers its webhook-id. */
  emit(subscription: number): Promise<string>;
  /** Emits one event to every subscription. */
  emitToAll(): Promise<string>;
  /** Deliveries whose success is recorded in the storage, since it was made. */
  recorded(): Promise<number>;
  /** Milliseconds from the receiver's answer to the record of it, of what was recorded since then (epoch ms): p99. */
  recordDelay?(since: number): Promise<number>;
  close(): Promise<void>;
}

/** The inside: runs in the worker process. */
export interface Work {
  /** Begins to work; `expected` is for the bare loop, which has nowhere to look. */
  start(expected: number): Promise<void>;
  /** Resolves when what was received is recorded and nothing runs. */
  stop(): Promise<void>;
  /** Emits as {@link Side.emit} does, beside the worker. */
  emit(subscription: number): Promise<string>;
  emitToAll(): Promise<string>;
  close(): Promise<void>;
}

export interface Contestant {
  readonly name: string;
  /** Why it does not run here; undefined = it does. */
  missing?(world: World): string | undefined;
  prepare(world: World, shape: Shape): Promise<Side>;
  work(config: WorkConfig): Promise<Work>;
}
