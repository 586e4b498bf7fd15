import { type LinkState, linkFaults } from "./network.ts";
import type { Ambush, SimProcess } from "./process.ts";
import type { Rng } from "./random.ts";
import { type Mood, moodFaults, type Receiver } from "./receiver.ts";
import type { Request, Workload } from "./workload.ts";
import type { Replica, Role, World } from "./world.ts";

/** Operations at which a process may be killed: who does them, and what brings those about that are rare. */
const operations: Readonly<Record<string, { readonly roles?: readonly Role[]; readonly request?: Request }>> =
  {
    open: {},
    takeNew: { roles: ["everything"] },
    matchSubscriptions: { roles: ["everything"] },
    dispatch: { roles: ["everything"], request: "change" },
    claim: { roles: ["everything", "worker alone"] },
    record: { roles: ["everything", "worker alone"], request: "change" },
    maintain: { roles: ["everything", "worker alone"], request: "unsubscribe" },
    transaction: { request: "change" },
    createSubscription: { request: "subscribe" },
    updateSubscription: { request: "change filter" },
    setSubscriptionStatus: { request: "pause or resume" },
    rotateSecret: { request: "rotate" },
    "replays.create": { request: "replay" },
    "replays.advance": { roles: ["everything", "worker alone"], request: "replay" },
    "replays.takeMissing": { roles: ["everything"], request: "replay what is missing" },
    "replays.fillMissing": { roles: ["everything"], request: "replay what is missing" },
    retryDelivery: { request: "retry" },
    cancelDelivery: { request: "cancel" },
  };

/** Every place where a process may be killed. A statement: any of the operation's statements on SQLite. */
export const crashPoints: readonly string[] = [
  ...Object.keys(operations).flatMap((name) => [`${name}: before`, `${name}: statement`, `${name}: after`]),
  "capture: before",
  "capture: after",
  "transaction: before commit",
  "send: on its way",
  "send: answered",
  "idle",
];
const onlyOnSqlite = (point: string): boolean => point.endsWith(": statement");
const onlyInMemory = (point: string): boolean =>
  point.startsWith("capture: ") || point === "transaction: before commit";

export const faultKinds: readonly string[] = [
  "crash",
  "frozen process",
  "store unreachable",
  "store answer lost",
  "statement failed",
  ...linkFaults.map((state) => `network: ${state}`),
  ...moodFaults.map((mood) => `receiver: ${mood}`),
];

/** Does harm, at times and places drawn from the seed. */
export class Faults {
  /** How many were begun. */
  begun = 0;
  /** When the last trouble of a receiver that was begun is over. */
  lastUntil = 0;
  readonly #world: World;
  readonly #workload: Workload;
  readonly #rng: Rng;
  #healed = false;

  constructor(world: World, workload: Workload) {
    this.#world = world;
    this.#workload = workload;
    this.#rng = world.rng("faults");
  }

  /** Appoints the faults of the next so many ms. */
  plan(ms: number): void {
    for (let count = this.#rng.int(4, 8); count > 0; count--)
      this.#world.time.after(this.#rng.int(0, ms), () => this.#strike());
  }

  /** The end of all faults but those that last a while yet: who died lives again, and nothing new befalls anybody. */
  heal(): void {
    this.#healed = true;
    for (const replica of this.#world.replicas) {
      replica.process.heal();
      this.#world.revive(replica);
    }
  }

  #strike(): void {
    if (this.#healed) return;
    const rng = this.#rng;
    const living = this.#world.replicas.filter(({ process }) => process.alive);
    if (living.length === 0) return;
    this.begun++;
    const { process } = rng.pick(living);
    const roll = rng.int(1, 100);
    if (roll <= 35) this.#kill(living);
    else if (roll <= 45) this.#freeze(process, rng.int(300, 5_000));
    else if (roll <= 52) this.#freezeBeside(living);
    else if (roll <= 58) process.loseStore(rng.int(500, 6_000));
    else if (roll <= 63) process.loseAnswer();
    else if (roll <= 68) process.failStatement(rng.int(1, 30));
    else
      this.#trouble(this.#someReceiver(), rng.pick([...linkFaults, ...moodFaults]), rng.int(1_000, 10_000));
  }

  #someReceiver(): Receiver {
    return this.#rng.pick(this.#world.subscribers.filter((_, index) => index !== 0 && index !== 5)).receiver;
  }

  #trouble(receiver: Receiver, what: (typeof linkFaults)[number] | Mood, ms: number): void {
    this.#world.journal.note(receiver.name, `is ${what} for ${ms} ms`);
    const isLink = (linkFaults as readonly string[]).includes(what);
    if (isLink) receiver.link = what as LinkState;
    else receiver.mood = what as Mood;
    this.lastUntil = Math.max(this.lastUntil, this.#world.time.now + ms);
    this.#world.time.after(ms, () => {
      if (isLink) receiver.link = "clean";
      else receiver.mood = "well";
    });
  }

  #freeze(process: SimProcess, ms: number): void {
    this.#world.journal.count("fault", "frozen process");
    process.stall(ms);
  }

  /**
   * Freezes a process while it sends, until about the time when another one, which has taken the delivery over at the
   * end of the lease, sends it as well. Neither gets an answer soon.
   */
  #freezeBeside(living: readonly Replica[]): void {
    const rng = this.#rng;
    const { time } = this.#world;
    const workers = living.filter(({ role }) => role !== "requests alone");
    if (workers.length === 0) return;
    const { process } = rng.pick(workers);
    const receiver = this.#someReceiver();
    const strike = (): void => {
      const what = rng.pick(["hanging", "hanging", "slow", "losing answers"] as const);
      this.#freeze(process, rng.int(28_000, 44_000));
      this.#trouble(receiver, what, 1_000);
      this.lastUntil = Math.max(this.lastUntil, time.now + 48_000);
      time.after(28_000, () => this.#trouble(receiver, what, 20_000));
    };
    this.#ambush(process, { point: "send: on its way", where: receiver, skip: 0, strike }, strike);
    this.#bringAbout("change");
  }

  #ambush(process: SimProcess, ambush: Ambush, orElse: () => void): void {
    process.lieInWait(ambush);
    this.#world.time.after(5_000, () => process.waitNoMore(ambush, orElse));
  }

  /** Kills a process at a point drawn by lot; when it does not come by soon, wherever it is. */
  #kill(living: readonly Replica[]): void {
    const rng = this.#rng;
    const { time, journal, application } = this.#world;
    const excluded = application.storeName === "memory" ? onlyOnSqlite : onlyInMemory;
    const point = rng.pick(crashPoints.filter((candidate) => !excluded(candidate)));
    const { roles, request } = operations[point.split(": ")[0]!] ?? {};
    const able = living.filter(({ role }) => !roles || roles.includes(role));
    const replica = rng.pick(able.length > 0 ? able : living);
    journal.count("fault", "crash");
    // To die while it starts, it must start.
    if (point.startsWith("open")) {
      replica.process.crash("idle");
      this.#world.revive(replica);
    }
    const victim = replica.process;
    victim.onCrash(() => {
      time.after(rng.int(100, 6_000), () => this.#world.revive(replica));
    });
    const skip = point.startsWith("open") ? 0 : rng.int(0, point.endsWith("statement") ? 12 : 1);
    if (point === "idle") victim.crash(point);
    else this.#ambush(victim, { point, skip, strike: () => victim.crash(point) }, () => victim.crash("idle"));
    if (request) this.#bringAbout(request, replica);
  }

  /** Asks a process that lives, or that one, for something a few times. */
  #bringAbout(request: Request, replica?: Replica): void {
    for (let times = 0; times < 3; times++)
      this.#world.time.after(times * 300, () => {
        if (this.#healed || replica?.process.alive === false) return;
        this.#workload.request(request, replica);
      });
  }
}
