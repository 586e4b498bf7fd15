import type { Delivery } from "../../src/model/delivery.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import type { World } from "./world.ts";

/** A pending row as a bare publisher enqueues it. */
export function row(world: World, id: string, changes: Partial<Delivery> = {}): Delivery {
  const now = world.time.clock();
  return {
    id,
    eventId: `evt_of_${id}`,
    subscriptionId: "sub_a",
    projectId: "live",
    url: "https://sub-a.example/hook",
    secret: "a plain secret",
    payload: Buffer.from(JSON.stringify({ row: id, text: "naïve ☃ 𝒳" })),
    status: "pending",
    attempts: 0,
    nextAttemptAt: now,
    createdAt: now,
    updatedAt: now,
    ...changes,
  };
}

/** Enqueues rows for a subscription that is there. */
export async function enqueue(world: World, ...ids: readonly string[]): Promise<void> {
  await world.store.addSubscription({
    id: "sub_a",
    projectId: "live",
    url: "https://sub-a.example/hook",
    secret: "a plain secret",
    eventTypes: [],
    active: true,
  });
  for (const id of ids) await world.store.enqueueDelivery(row(world, id));
}

export async function get(store: OutboxStore, id: string): Promise<Delivery> {
  const found = await store.get(id);
  if (!found) throw new Error(`no delivery ${id}`);
  return found;
}

/** The store, with some methods replaced. */
export function failing<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get(object, name) {
      if (name in replaced) return Reflect.get(replaced, name);
      const member: unknown = Reflect.get(object, name, object);
      return typeof member === "function" ? member.bind(object) : member;
    },
  });
}
