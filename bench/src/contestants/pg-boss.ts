import { PgBoss } from "pg-boss";
import { type Job, Poster } from "../webhook.ts";
import type { Contestant, Shape } from "./contract.ts";
import { emitters } from "./jobs.ts";

const queue = "webhook";

async function open(storage: string): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: storage, max: 10, useListenNotify: true, schedule: false });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  return boss;
}

function emitting(boss: PgBoss, shape: Shape, count: (jobs: number) => void = () => {}) {
  return emitters(shape, async (jobs) => {
    await boss.insert(
      queue,
      jobs.map((data) => ({ data })),
    );
    count(jobs.length);
  });
}

/** pg-boss with notices, batches that follow each other while they are full, and an outcome for each job. */
export const pgBoss: Contestant = {
  name: "pg-boss",
  async prepare({ postgres, origin }, shape) {
    const storage = await postgres.database();
    const boss = await open(storage);
    await boss.createQueue(queue, { notify: true, retryLimit: 5 });
    const database = new URL(storage).pathname.slice(1);
    return {
      config: { ...shape, contestant: this.name, origin, storage },
      ...emitting(boss, shape),
      async recorded() {
        const sql = `SELECT count(*)::int AS n FROM pgboss.job WHERE name = '${queue}' AND state = 'completed'`;
        const [result] = await postgres.run(database, sql);
        return Number(result?.rows[0]?.n);
      },
      close: () => boss.stop({ graceful: false }),
    };
  },
  async work({ storage, origin, ...shape }) {
    const poster = new Poster(origin);
    const boss = await open(storage);
    return {
      ...emitting(boss, shape),
      async start() {
        await boss.work<Job>(
          queue,
          {
            batchSize: 100,
            localConcurrency: 4,
            burstWhenBatchFull: true,
            pollingIntervalSeconds: 0.5,
            notifyPollingIntervalSeconds: 0.5,
            perJobResults: true,
          },
          (jobs) =>
            Promise.all(
              jobs.map(async ({ id, data }) => {
                await poster.post(data);
                return { id, status: "completed" as const };
              }),
            ),
        );
      },
      async stop() {
        await boss.offWork(queue, { wait: true });
      },
      async close() {
        await boss.stop({ graceful: false });
        await poster.close();
      },
    };
  },
};
