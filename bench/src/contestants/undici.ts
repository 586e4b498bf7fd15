import { type Job, Poster } from "../webhook.ts";
import type { Contestant } from "./contract.ts";
import { jobsOf } from "./jobs.ts";

const concurrency = 64;

/** No queue at all: what signing and posting alone costs, the floor under everybody else. */
export const bareUndici: Contestant = {
  name: "bare undici loop",
  async prepare({ origin }, shape) {
    return {
      config: { ...shape, contestant: this.name, origin, storage: "" },
      enqueue: async (deliveries) => Math.ceil(deliveries / shape.subscriptions) * shape.subscriptions,
      emit: async () => "",
      emitToAll: async () => "",
      recorded: async () => Number.NaN,
      close: async () => {},
    };
  },
  async work({ origin, ...shape }) {
    const poster = new Poster(origin);
    const jobs = jobsOf(shape);
    let running: Promise<unknown> = Promise.resolve();
    return {
      async start(expected) {
        let left = expected;
        let waiting: Job[] = [];
        const next = (): Job | undefined => {
          if (left-- <= 0) return undefined;
          if (waiting.length === 0) waiting = jobs.toAll();
          return waiting.pop();
        };
        running = Promise.all(
          Array.from({ length: concurrency }, async () => {
            for (let job = next(); job; job = next()) await poster.post(job);
          }),
        );
      },
      async stop() {
        await running;
      },
      emit: async (subscription) => {
        const job = jobs.to(subscription);
        await poster.post(job);
        return job.id;
      },
      emitToAll: async () => {
        const all = jobs.toAll();
        await Promise.all(all.map((job) => poster.post(job)));
        return all[0]?.id ?? "";
      },
      close: () => poster.close(),
    };
  },
};
