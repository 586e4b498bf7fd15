import { createHookwell } from "../../src/publish/create-hookwell.ts";
import { defineEvents } from "../../src/publish/define-events.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { turns, VirtualTime } from "./virtual-time.ts";

/** Statements that a store has sent to its database, and those that are not answered yet. */
export class StatementCount {
  readonly texts: string[] = [];
  running = 0;

  async of<T>(text: string, work: Promise<T>): Promise<T> {
    this.texts.push(text);
    this.running++;
    try {
      return await work;
    } finally {
      this.running--;
    }
  }
}

const schema = {
  "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
} as const;

/**
 * Statements a second of dispatcher, worker and maintenance while nothing happens, over half a virtual minute, with a
 * catalogue of thirty types.
 */
export async function idleStatementsPerSecond(store: OutboxStore, count: StatementCount): Promise<number> {
  const time = new VirtualTime();
  const types = Array.from(
    { length: 30 },
    (_, n) => [`thing.happened_${n}`, { schema, jsonSchema: {} }] as const,
  );
  const hooks = createHookwell({
    store,
    project: "live",
    events: defineEvents(Object.fromEntries(types)),
    timers: time,
    randomNumber: () => 0.5,
  });
  const settle = async (): Promise<void> => {
    do await turns(5);
    while (count.running > 0);
  };
  const run = hooks.start();
  while (time.sleeping < 3) await settle();
  await time.advance(5_000, settle);
  const before = count.texts.length;
  await time.advance(30_000, settle);
  const statements = count.texts.length - before;
  await run.stop();
  return statements / 30;
}
