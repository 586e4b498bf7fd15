import { Logger, type Runner, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { type Job, Poster } from "../webhook.ts";
import type { Contestant } from "./contract.ts";
import { emitters } from "./jobs.ts";

const quiet = new Logger(() => () => {});

/** In one statement, so that many jobs cost one round trip, as its own documentation advises. */
function adder(pool: pg.Pool) {
  return (jobs: readonly Job[]) =>
    pool.query(
      `SELECT graphile_worker.add_jobs(array(
        SELECT ('webhook', j, NULL, NULL, 25::smallint, NULL, NULL, NULL)::graphile_worker.job_spec
        FROM json_array_elements($1::json) AS j))`,
      [JSON.stringify(jobs)],
    );
}

/** graphile-worker with its local queue and batched completion, recorded within 10 ms. */
export const graphileWorker: Contestant = {
  name: "graphile-worker",
  async prepare({ postgres, origin }, shape) {
    const storage = await postgres.database();
    await runMigrations({ connectionString: storage, logger: quiet });
    const pool = new pg.Pool({ connectionString: storage, max: 4 });
    let added = 0;
    const add = adder(pool);
    return {
      config: { ...shape, contestant: this.name, origin, storage },
      ...emitters(shape, async (jobs) => {
        await add(jobs);
        added += jobs.length;
      }),
      // What succeeded is deleted.
      async recorded() {
        const sql = "SELECT count(*)::int AS n FROM graphile_worker._private_jobs";
        return added - Number((await pool.query(sql)).rows[0].n);
      },
      close: () => pool.end(),
    };
  },
  async work({ storage, origin, ...shape }) {
    const poster = new Poster(origin);
    const pool = new pg.Pool({ connectionString: storage, max: 10 });
    // graphile-worker asks for both.
    pool.on("error", () => {});
    pool.on("connect", (client) => client.on("error", () => {}));
    let runner: Runner | undefined;
    return {
      ...emitters(shape, adder(pool)),
      async start() {
        runner = await run({
          pgPool: pool,
          logger: quiet,
          noHandleSignals: true,
          taskList: { webhook: (job) => poster.post(job as Job) },
          preset: {
            worker: {
              concurrentJobs: 64,
              localQueue: { size: 512 },
              completeJobBatchDelay: 10,
              failJobBatchDelay: 10,
            },
          },
        });
      },
      async stop() {
        await runner?.stop();
      },
      async close() {
        await poster.close();
        await pool.end();
      },
    };
  },
};
