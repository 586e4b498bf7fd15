import { Queue, Worker } from "bullmq";
import { type Job, Poster } from "../webhook.ts";
import type { Contestant } from "./contract.ts";
import { emitters } from "./jobs.ts";

const name = "webhook";
/** Completed jobs are kept, so that they can be counted and looked at, as with the others. */
const options = { attempts: 5, removeOnComplete: false } as const;

function connectionOf(storage: string) {
  return { host: "127.0.0.1", port: Number(storage), maxRetriesPerRequest: null };
}

function adder(queue: Queue) {
  return (jobs: readonly Job[]) => queue.addBulk(jobs.map((data) => ({ name, data, opts: options })));
}

/** BullMQ on a Redis that writes every command to the disk. Its jobs are not in the application's transaction. */
export const bullmq: Contestant = {
  name: "BullMQ",
  missing: ({ redis }) => (redis ? undefined : "no redis-server on this machine"),
  async prepare({ redis, origin }, shape) {
    const storage = String(redis?.port);
    const queue = new Queue(name, { connection: connectionOf(storage) });
    await queue.obliterate({ force: true });
    return {
      config: { ...shape, contestant: this.name, origin, storage },
      ...emitters(shape, adder(queue)),
      recorded: () => queue.getCompletedCount(),
      close: () => queue.close(),
    };
  },
  async work({ storage, origin, ...shape }) {
    const poster = new Poster(origin);
    const queue = new Queue(name, { connection: connectionOf(storage) });
    let worker: Worker | undefined;
    return {
      ...emitters(shape, adder(queue)),
      async start() {
        worker = new Worker(name, (job) => poster.post(job.data as Job), {
          connection: connectionOf(storage),
          concurrency: 64,
        });
        worker.on("error", (error) => console.error(`BullMQ: ${error.message}`));
        await worker.waitUntilReady();
      },
      async stop() {
        await worker?.close();
        worker = undefined;
      },
      async close() {
        await queue.close();
        await poster.close();
      },
    };
  },
};
