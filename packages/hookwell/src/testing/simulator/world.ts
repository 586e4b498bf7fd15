import type { RetrySchedule } from "../../model/retry.ts";
import type { OutboxStore } from "../../store/contract.ts";
import type { Application, Launched } from "./application.ts";
import { Journal } from "./journal.ts";
import { exchangeMs, Network } from "./network.ts";
import type { Plant } from "./plants.ts";
import { SimProcess } from "./process.ts";
import { Rng } from "./random.ts";
import { Receiver } from "./receiver.ts";
import { storeSeam } from "./store-seam.ts";
import { type Phase, Subscriber } from "./subscriber.ts";
import { VirtualTime } from "./virtual-time.ts";

/** One place where a process runs, life after life. */
export interface Replica {
  readonly name: string;
  readonly role: Role;
  readonly lives: SimProcess[];
  process: SimProcess;
  launched: Launched;
}

/** What a process runs besides the requests that it answers. */
export type Role = "everything" | "worker alone" | "requests alone";

const deployments: readonly Climate["replicas"][] = [
  [
    ["A", "everything"],
    ["B", "everything"],
  ],
  [
    ["A", "everything"],
    ["B", "everything"],
    ["W", "requests alone"],
  ],
  [
    ["A", "everything"],
    ["B", "worker alone"],
    ["W", "requests alone"],
  ],
  [
    ["A", "everything"],
    ["B", "everything"],
    ["C", "worker alone"],
    ["W", "requests alone"],
  ],
];

/** What this world is like, drawn from its seed. */
export interface Climate {
  readonly replicas: readonly (readonly [name: string, role: Role])[];
  readonly retry: RetrySchedule;
  readonly breaks: boolean;
  readonly disables: boolean;
}

const silent = { info: () => {}, warn: () => {}, error: () => {} };

/** Everything there is in one run, and how it is put together. */
export class World {
  readonly seed: number;
  readonly time = new VirtualTime();
  readonly journal: Journal;
  readonly network: Network;
  readonly application: Application;
  readonly climate: Climate;
  readonly plant: Plant | undefined;
  readonly replicas: Replica[] = [];
  readonly subscribers: Subscriber[] = [];
  /** Calls of the failure hook, by delivery id. */
  readonly reported = new Map<string, number>();
  /** What operators did to a delivery by hand: by delivery id, from and until when. */
  readonly byHand = new Map<
    string,
    { readonly what: "retry" | "cancel"; readonly from: number; until: number }[]
  >();
  readonly #wakes = new Map<SimProcess, () => void>();
  readonly #around: (store: OutboxStore) => OutboxStore;

  constructor(
    seed: number,
    options: {
      readonly traced: boolean;
      readonly plant: Plant | undefined;
      readonly application: (time: VirtualTime) => Application;
    },
  ) {
    this.seed = seed;
    this.journal = new Journal(this.time, options.traced);
    this.network = new Network(this.time, this.rng("network"), this.journal);
    this.application = options.application(this.time);
    this.plant = options.plant;
    this.#around = options.plant?.store?.(this) ?? ((store) => store);
    const rng = this.rng("climate");
    this.climate = {
      replicas: rng.pick(deployments),
      retry: {
        delays: rng.pick([
          [1_000, 3_000, 8_000],
          [500, 1_000, 2_000, 4_000, 6_000],
          [2_000, 2_000],
        ]),
        jitter: rng.pick([0, 0.2]),
      },
      breaks: rng.chance(0.7),
      disables: rng.chance(0.3),
    };
    for (const [name, role] of this.climate.replicas) {
      const process = this.#process(name, 1);
      this.replicas.push({ name, role, lives: [process], process, launched: this.#launch(process, role) });
    }
  }

  /** A stream of chance of its own, so that one part of the world does not disturb another. */
  rng(purpose: string): Rng {
    return new Rng(`${this.seed} ${purpose}`);
  }

  /** A process that died is started anew. */
  revive(replica: Replica): void {
    if (replica.process.alive) return;
    const process = this.#process(replica.name, replica.lives.length + 1);
    replica.lives.push(process);
    replica.process = process;
    replica.launched = this.#launch(process, replica.role);
    this.journal.note(process.name, "starts");
  }

  /** Somebody new wants webhooks: not subscribed yet. */
  subscriber(options: { readonly ordered: boolean; readonly maxInFlight?: number | undefined }): Subscriber {
    const key = `s${this.subscribers.length}`;
    const secret = `whsec_${Buffer.from(`the secret of subscriber ${key}, long enough`).toString("base64")}`;
    const receiver = new Receiver(key, secret, this.time, this.rng(`receiver ${key}`), this.journal);
    const subscriber = new Subscriber(key, receiver, options);
    receiver.onFailure = (result) => {
      if (result === 410 || this.climate.disables) subscriber.mayBeDisabled(this.time.now);
    };
    this.subscribers.push(subscriber);
    this.network.connect(receiver);
    return subscriber;
  }

  /** Subscribes, through one replica. */
  async subscribe(replica: Replica, subscriber: Subscriber, eventTypes: readonly string[]): Promise<void> {
    const { key, receiver, ordered, maxInFlight } = subscriber;
    const phase: Phase = { status: "active", eventTypes };
    subscriber.mayBecome({ status: "deleted", eventTypes }, this.time.now);
    subscriber.mayBecome(phase, this.time.now);
    const record = await replica.launched.hooks.subscriptions.create({
      url: `https://${receiver.host}/v1`,
      secret: receiver.firstSecret,
      eventTypes,
      externalId: key,
      ordering: ordered ? "subject" : "none",
      ...(maxInFlight !== undefined && { maxInFlight }),
    });
    subscriber.id = record.id;
    subscriber.is(phase, this.time.now);
    this.journal.note(
      replica.process.name,
      "subscribes",
      key,
      record.id,
      eventTypes.join(" ") || "to all",
      ordered ? "ordered" : "",
    );
  }

  #process(name: string, life: number): SimProcess {
    const rng = this.rng(`process ${name}${life}`);
    return new SimProcess(`${name}${life}`, this.time, rng, this.journal);
  }

  #launch(process: SimProcess, role: Role): Launched {
    const rng = this.rng(`hookwell ${process.name}`);
    const wakes = {
      wakeOthers: () => this.#wakeOthers(process, rng),
      onWake: (act: () => void) => {
        this.#wakes.set(process, act);
        return () => this.#wakes.delete(process);
      },
    };
    const { breaks, disables, retry } = this.climate;
    const launched = this.application.launch(process, {
      around: (store) => storeSeam(this.#around(store), process, wakes),
      emitsOutside: this.plant?.emitsOutside ?? false,
      hookwell: {
        project: "sim",
        clock: () => new Date(this.time.now),
        monotonic: () => this.time.now,
        timers: process.timers,
        random: rng.bytes,
        randomNumber: rng.number,
        sender: this.network.sender(process),
        limits: { exchangeMs },
        retry,
        lanes: {
          breaker: breaks && { failures: 4, probeMs: 1_000, probeMaxMs: 4_000 },
          disable: disables && { failures: 6, overMs: 4_000 },
        },
        logger: silent,
        observe: (name, event) => {
          if (this.journal.traced && name !== "captured" && name !== "attempted")
            this.journal.note(process.name, `observes ${name}`, JSON.stringify(event));
        },
      },
    });
    if (role === "requests alone") return launched;
    launched.hooks.start({
      dispatcher: role === "everything",
      failureHook: ({ id }) => this.reported.set(id, (this.reported.get(id) ?? 0) + 1),
    });
    return launched;
  }

  /** A hint that may be late or lost. */
  #wakeOthers(process: SimProcess, rng: Rng): void {
    for (const [other, act] of this.#wakes)
      if (other !== process && rng.chance(0.1)) other.later(rng.int(0, 40), act);
  }
}
