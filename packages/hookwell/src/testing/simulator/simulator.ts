import type { DeliveryRecord } from "../../model/delivery.ts";
import type { DeliveryFilter } from "../../store/contract.ts";
import { MemoryApplication, SqliteApplication } from "./application.ts";
import { Disk } from "./disk.ts";
import { Evidence } from "./evidence.ts";
import { Faults } from "./faults.ts";
import type { Tally } from "./journal.ts";
import { least } from "./least.ts";
import type { Plant } from "./plants.ts";
import { judge, judgeRetried } from "./verdict.ts";
import { Workload } from "./workload.ts";
import { World } from "./world.ts";

/** Faults and requests come within this time, longer when fewer than the least came by then. */
const activeMs = 10_000;
/** What is not at rest this long after the last fault never will be. */
const restlessMs = 900_000;
/** Abandoned deliveries that are retried at the end of a run. */
const mostRetried = 10;

export interface SimulationResult {
  readonly seed: number;
  readonly store: "memory" | "sqlite";
  /** Empty = every promise was kept. */
  readonly violations: readonly string[];
  /** Every step, when it was asked for. */
  readonly trace: readonly string[];
  readonly tally: Tally;
  readonly had: typeof least;
  readonly virtualMs: number;
}

export interface SimulationOptions {
  /** Keeps every step in words. */
  readonly traced?: boolean;
  /** A fault in the product. */
  readonly plant?: Plant;
}

/** Runs one world after the other, each from its seed. */
export class Simulator {
  /** By what they change of the product's SQL. */
  readonly #disks = new Map<Plant["sql"], Disk>();

  /** One run: a pure function of the seed. Even seeds are in memory, odd ones on SQLite. */
  async run(seed: number, { traced = false, plant }: SimulationOptions = {}): Promise<SimulationResult> {
    const disk = seed % 2 === 0 ? undefined : await this.#disk(plant?.sql);
    const world = new World(seed, {
      traced,
      plant,
      application: (time) => (disk ? new SqliteApplication(disk, time) : new MemoryApplication(time)),
    });
    const { violations } = await live(world);
    const { journal, application, subscribers, replicas, time } = world;
    return {
      seed,
      store: application.storeName,
      violations,
      // The name of the file is another one each time.
      trace: disk ? journal.trace.map((line) => line.replaceAll(disk.path, "app.db")) : journal.trace,
      tally: journal.tally,
      had: {
        events: application.committed().length,
        subscriptions: subscribers.length,
        workers: replicas.filter(({ role }) => role !== "requests alone").length,
        faults: journal.tally.of("done", "faults"),
      },
      virtualMs: time.now - time.start,
    };
  }

  async #disk(sql: Plant["sql"]): Promise<Disk> {
    const disk = this.#disks.get(sql) ?? (await Disk.make(sql?.rewrite, sql?.ruin));
    this.#disks.set(sql, disk);
    return disk;
  }

  close(): void {
    for (const disk of this.#disks.values()) disk.close();
    this.#disks.clear();
  }
}

/** From the first subscription to the verdict. */
async function live(world: World): Promise<Evidence> {
  const { time, journal, application } = world;
  const workload = new Workload(world);
  const faults = new Faults(world, workload);
  const rng = world.rng("pace");
  await during(world, workload.begin());

  faults.plan(activeMs);
  const end = time.now + activeMs;
  const ask = (): void => {
    if (time.now > end && application.committed().length >= least.events) return;
    workload.next();
    time.after(rng.int(20, 900), ask);
  };
  ask();
  await time.runUntil(end);
  while (application.committed().length < least.events || faults.begun < least.faults) {
    if (faults.begun < least.faults) faults.plan(1_000);
    await time.runUntil(time.now + 1_000);
  }
  journal.count("done", "faults", faults.begun);

  faults.heal();
  await time.runUntil(Math.max(time.now, faults.lastUntil));
  journal.note("world", "has no faults any more");
  while (!workload.idle) await time.runUntil(time.now + 500);
  await during(world, workload.settle());
  const rests = await rest(world, workload);
  const evidence = new Evidence(world);
  if (!rests)
    for (const { id, subscriptionId, attempts, hold } of await list(world, "pending"))
      evidence.broken(
        "6 what was not delivered is visible",
        `${id} of ${subscriptionId} is still pending after ${restlessMs} ms (attempts ${attempts}, hold ${hold})`,
      );
  const failed = await list(world, "failed");
  judge(evidence, { failed, cancelled: await list(world, "cancelled") });

  // Who answered 410 after a long while is off since the last look.
  await during(world, workload.settle());
  const again = failed.filter((row) => canBeRetried(world, row)).slice(0, mostRetried);
  for (const { id } of again) await during(world, world.replicas[0]!.launched.hooks.deliveries.retry(id));
  await rest(world, workload);
  judgeRetried(evidence, again);
  return evidence;
}

/** Lets time pass until the promise is settled. */
async function during<T>({ time }: World, promise: Promise<T>): Promise<T> {
  let pending = true;
  const done = (): void => {
    pending = false;
  };
  promise.then(done, done);
  while (pending) await time.runUntil(time.now + 500);
  return promise;
}

/**
 * Lets time pass until everything that was committed has been sent and nothing is pending, twice in a row: a delivery
 * that has just failed is followed by an event that tells of it. False = it never comes to that.
 */
async function rest(world: World, workload: Workload): Promise<boolean> {
  const { time, application, network } = world;
  const last = time.now + restlessMs;
  for (let quiet = 0; time.now < last; ) {
    await time.runUntil(time.now + (quiet === 0 ? 2_000 : 1_500));
    const sent = new Set(network.attempts.map(({ headers }) => headers.get("webhook-id")));
    if (application.committed().some(({ eventId }) => !sent.has(eventId))) continue;
    const pending = await list(world, "pending");
    const { replays } = world.replicas[0]!.launched.hooks;
    const running = await during(world, replays.list({ status: "running" }));
    quiet = pending.length === 0 && running.items.length === 0 ? quiet + 1 : 0;
    if (quiet === 2) return true;
    // An exchange that was under way when the faults ended may still have been the one too many.
    if (pending.some(({ hold }) => hold === "disabled")) await during(world, workload.settle());
  }
  return false;
}

async function list(
  world: World,
  status: NonNullable<DeliveryFilter["status"]>,
): Promise<readonly DeliveryRecord[]> {
  const { deliveries } = world.replicas[0]!.launched.hooks;
  const rows: DeliveryRecord[] = [];
  for (let after: Awaited<ReturnType<typeof deliveries.list>>["next"]; ; ) {
    const page = await during(world, deliveries.list({ status }, { limit: 100, ...(after && { after }) }));
    rows.push(...page.items);
    after = page.next;
    if (!after) return rows;
  }
}

/** Not when nobody is there to get it any more, nor where a later revision may have gone before it. */
function canBeRetried(world: World, { subscriptionId, subject }: DeliveryRecord): boolean {
  return world.subscribers.some(
    ({ id, deleted, ordered }) => id === subscriptionId && !deleted && !(ordered && subject !== undefined),
  );
}
