import { randomUUID } from "node:crypto";
import { type Job, makeBody, makeData } from "../webhook.ts";
import type { Shape, Side } from "./contract.ts";

/** Most jobs that one call of a queue adds in the preparation. */
const batch = 1_000;

/** A peer has no fan-out: one event is as many jobs as it has subscribers, with the body rendered once. */
export function jobsOf({ subscriptions, bodyBytes }: Shape): {
  toAll(): Job[];
  to(subscription: number): Job;
} {
  const data = makeData(bodyBytes);
  const make = (): { id: string; body: string } => {
    const id = `evt_${randomUUID()}`;
    return { id, body: makeBody(id, data) };
  };
  return {
    toAll() {
      const event = make();
      return Array.from({ length: subscriptions }, (_, subscription) => ({ ...event, subscription }));
    },
    to: (subscription) => ({ ...make(), subscription }),
  };
}

/** How a peer's side is made of the one call that adds jobs. */
export function emitters(
  shape: Shape,
  add: (jobs: readonly Job[]) => Promise<unknown>,
): Pick<Side, "enqueue" | "emit" | "emitToAll"> {
  const jobs = jobsOf(shape);
  return {
    async enqueue(deliveries) {
      const events = Math.ceil(deliveries / shape.subscriptions);
      const perCall = Math.max(1, Math.floor(batch / shape.subscriptions));
      for (let from = 0; from < events; from += perCall) {
        const some = Array.from({ length: Math.min(perCall, events - from) }, () => jobs.toAll());
        await add(some.flat());
      }
      return events * shape.subscriptions;
    },
    async emit(subscription) {
      const job = jobs.to(subscription);
      await add([job]);
      return job.id;
    },
    async emitToAll() {
      const all = jobs.toAll();
      await add(all);
      return all[0]?.id ?? "";
    },
  };
}
