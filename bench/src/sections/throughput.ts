import type { Contestant, Shape, Side, World } from "../contestants/contract.ts";
import { steadyMs } from "../measuring.ts";
import type { Receiver } from "../receiver-process.ts";
import { WorkerHandle } from "../worker-handle.ts";

export interface Round {
  readonly perSecond: number;
  /** CPU of the worker process for one delivery, in microseconds. */
  readonly workerCpuUs: number;
  /** CPU of PostgreSQL for one delivery; undefined where it is not known or not used. */
  readonly databaseCpuUs: number | undefined;
  readonly rssMb: number;
  /** From the receiver's answer to its record, 99th percentile in ms; undefined where nobody keeps both times. */
  readonly recordDelayMs: number | undefined;
}

/** One contestant, ready for rounds: its storage, and its worker process, which stays for all rounds. */
export class Stand {
  readonly contestant: Contestant;
  readonly side: Side;
  readonly worker: WorkerHandle;
  readonly #world: World;
  readonly #receiver: Receiver;
  /** Deliveries made so far. */
  #made = 0;

  private constructor(
    contestant: Contestant,
    side: Side,
    worker: WorkerHandle,
    world: World,
    receiver: Receiver,
  ) {
    this.contestant = contestant;
    this.side = side;
    this.worker = worker;
    this.#world = world;
    this.#receiver = receiver;
  }

  static async open(
    contestant: Contestant,
    world: World,
    receiver: Receiver,
    shape: Shape,
    profile?: string,
  ): Promise<Stand> {
    const side = await contestant.prepare(world, shape);
    return new Stand(contestant, side, await WorkerHandle.open(side.config, profile), world, receiver);
  }

  /**
   * Makes `deliveries` of work, has the worker do it, and checks that what was emitted, received and recorded is
   * the same.
   * @throws when it is not
   */
  async round(deliveries: number): Promise<Round> {
    const expected = await this.side.enqueue(deliveries);
    await this.#receiver.reset();
    const usesPostgres = this.side.config.storage.startsWith("postgres:");
    if (usesPostgres) await this.#world.postgres.run("postgres", "CHECKPOINT");
    const before = await this.worker.usage();
    const databaseBefore = this.#world.postgres.cpuSeconds();
    const begun = steadyMs();
    const since = Date.now();
    await this.worker.start(expected);
    await this.#receiver.expect(expected, 60_000 + expected * 5);
    await this.worker.stop();
    const databaseAfter = this.#world.postgres.cpuSeconds();
    const after = await this.worker.usage();
    const { requests, different, lastAt } = await this.#receiver.counts();
    this.#made += expected;
    const recorded = await this.side.recorded();
    // The bare loop has nowhere to record.
    const agreed =
      different === expected && requests === expected && (Number.isNaN(recorded) || recorded === this.#made);
    if (!agreed)
      throw new Error(
        `${this.contestant.name}: ${expected} emitted, ${requests} received (${different} different), ${recorded} of ${this.#made} recorded: the run does not count.`,
      );
    const databaseCpu =
      usesPostgres && databaseBefore !== undefined && databaseAfter !== undefined
        ? ((databaseAfter - databaseBefore) * 1e6) / expected
        : undefined;
    return {
      perSecond: (expected * 1_000) / (lastAt - begun),
      workerCpuUs: ((after.cpuMs - before.cpuMs) * 1_000) / expected,
      databaseCpuUs: databaseCpu,
      rssMb: after.rssBytes / 2 ** 20,
      recordDelayMs: await this.side.recordDelay?.(since),
    };
  }

  async close(): Promise<void> {
    await this.worker.close();
    await this.side.close();
  }
}

export interface ThroughputResult {
  readonly contestant: string;
  readonly rounds: readonly Round[];
}

/** Everybody in turns: in each round each contestant once, after a first one that warms up and does not count. */
export async function measureThroughput(
  list: readonly Contestant[],
  world: World,
  receiver: Receiver,
  settings: {
    readonly shape: Shape;
    readonly deliveries: number;
    readonly rounds: number;
    readonly profile?: string;
  },
  report: (line: string) => void,
): Promise<ThroughputResult[]> {
  const stands: Stand[] = [];
  try {
    for (const contestant of list) {
      const stand = await Stand.open(contestant, world, receiver, settings.shape, settings.profile);
      stands.push(stand);
      await stand.round(Math.ceil(settings.deliveries / 3));
    }
    const rounds = stands.map((): Round[] => []);
    for (let round = 0; round < settings.rounds; round++)
      for (const [index, stand] of stands.entries()) {
        const measured = await stand.round(settings.deliveries);
        rounds[index]!.push(measured);
        report(
          `round ${round + 1}/${settings.rounds} ${stand.contestant.name}: ${Math.round(measured.perSecond)}/s, ` +
            `worker ${Math.round(measured.workerCpuUs)} us, database ${Math.round(measured.databaseCpuUs ?? 0)} us`,
        );
      }
    return stands.map(({ contestant }, index) => ({ contestant: contestant.name, rounds: rounds[index]! }));
  } finally {
    for (const stand of stands) await stand.close();
  }
}
