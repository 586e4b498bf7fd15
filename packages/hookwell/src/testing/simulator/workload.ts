import { isHookwellError, StorageError } from "../../model/errors.ts";
import type { ReplayedStatus } from "../../model/replay.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import { RolledBack, type Wish } from "./application.ts";
import { isAnswered } from "./evidence.ts";
import { least } from "./least.ts";
import type { Rng } from "./random.ts";
import type { Phase, Subscriber } from "./subscriber.ts";
import type { Replica, World } from "./world.ts";

/** Kinds of requests, with how often they come. */
const mix = [
  [45, "change"],
  [4, "pause or resume"],
  [2, "disable or enable"],
  [3, "change filter"],
  [3, "change url"],
  [2, "change limit"],
  [2, "subscribe"],
  [1, "unsubscribe"],
  [3, "rotate"],
  [2, "replay"],
  [4, "retry"],
  [2, "cancel"],
] as const;
export type Request = (typeof mix)[number][1] | "replay what is missing";

/** Most of what happens concerns few: a run has its events without as many deliveries. */
const types = [
  "order.changed",
  "payment.made",
  ...Array.from({ length: 6 }, () => "note.added" as const),
] as const;
const filters = [["order.*"], ["payment.made"], ["order.changed", "payment.*"]] as const;
const replayed: readonly (readonly ReplayedStatus[])[] = [
  ["missing"],
  ["failed", "missing"],
  ["delivered"],
  ["failed", "cancelled"],
  ["failed", "delivered", "cancelled", "missing"],
];
const mostSubscribers = 7;

/** What people ask of the application while the run lasts, each thing of a process that lives. */
export class Workload {
  readonly #world: World;
  readonly #rng: Rng;
  /** Wishes of which nobody knows whether they were carried out: they are repeated. */
  readonly #unknown: Wish[] = [];
  /** When all of the beginning were there. */
  #begunAt = 0;
  #wishes = 0;
  #underWay = 0;

  constructor(world: World) {
    this.#world = world;
    this.#rng = world.rng("workload");
  }

  /** Who is there from the beginning. The first takes everything and is never touched; the last hears of trouble. */
  async begin(): Promise<void> {
    const world = this.#world;
    const [replica] = world.replicas;
    const first: [options: { ordered: boolean; maxInFlight?: number }, eventTypes: readonly string[]][] = [
      [{ ordered: false }, []],
      [{ ordered: true }, ["order.*"]],
      [{ ordered: false, maxInFlight: this.#rng.int(1, 3) }, this.#rng.pick(filters)],
      [{ ordered: false }, ["payment.made"]],
      [{ ordered: false }, this.#rng.pick(filters)],
      [{ ordered: false }, ["hookwell.*"]],
    ];
    for (const [options, eventTypes] of first)
      await world.subscribe(replica!, world.subscriber(options), eventTypes);
    world.subscribers[0]!.receiver.near = true;
    this.#begunAt = world.time.now;
  }

  /** Those that things may be done to: neither the witness nor the one that watches. */
  get subjects(): Subscriber[] {
    return this.#world.subscribers.filter(
      ({ busy, id }, index) => index !== 0 && index !== 5 && !busy && id !== undefined,
    );
  }

  /** Nothing that was asked for is still being done. */
  get idle(): boolean {
    return this.#underWay === 0;
  }

  /** One request of the usual mix. */
  next(): void {
    const total = mix.reduce((sum, [weight]) => sum + weight, 0);
    let place = this.#rng.int(1, total);
    for (const [weight, request] of mix) {
      place -= weight;
      if (place > 0) continue;
      this.request(request);
      return;
    }
  }

  /** One request, of a process that lives or of that one. */
  request(request: Request, wanted?: Replica): void {
    const living = this.#world.replicas.filter(({ process }) => process.alive);
    const usual = living.find(({ role }) => role === "requests alone");
    const replica =
      wanted ??
      (usual && this.#rng.chance(0.85) ? usual : living.length > 0 ? this.#rng.pick(living) : undefined);
    if (!replica) return;
    this.#world.journal.count("done", request);
    if (request === "change") this.#change(replica);
    else if (request === "retry" || request === "cancel") this.#byHand(replica, request);
    else if (request === "subscribe") this.#subscribe(replica);
    else {
      const lacking = this.subjects.filter((each) => !each.ordered && each.mayLack(this.#begunAt));
      const wanted = request === "replay what is missing" && lacking.length > 0 ? lacking : this.subjects;
      const subject = wanted.length > 0 ? this.#rng.pick(wanted) : undefined;
      if (subject?.current && !subject.deleted) this.#manage(replica, request, subject, subject.current);
    }
  }

  #change(replica: Replica): void {
    const rng = this.#rng;
    const { process, launched } = replica;
    const wishes: Wish[] = [];
    // No more events than it takes: once they are there, changes are small.
    const missing = least.events - this.#world.application.committed().length;
    for (let count = Math.min(rng.pick([1, 3, 6, 10]), Math.max(missing, 1)); count > 0; count--) {
      const number = ++this.#wishes;
      const type = rng.pick(types);
      const wish = { type, order: `o${rng.int(1, 2)}`, amount: number } as const;
      const named = this.#world.plant?.emitsOutside || rng.chance(0.7);
      wishes.push({ ...wish, ...(named && { id: `evt_wish${number}` }) });
    }
    if (this.#unknown.length > 0 && rng.chance(0.5)) wishes.push(this.#unknown.shift()!);
    const rollsBack = rng.chance(0.1);
    const openMs = rng.chance(0.08) ? rng.int(1, 400) : 0;
    const names = wishes.map(({ id, type }) => id ?? type).join(", ");
    this.#world.journal.note(process.name, "changes", names, rollsBack ? "and rolls back" : "");
    // A request that was carried out comes again now and then: its answer was lost on the way to the client.
    const repeats = !rollsBack && rng.chance(0.07);
    this.#attempt(
      replica,
      () => launched.transact({ wishes, rollsBack, openMs }),
      (outcome) => {
        this.#world.journal.note(process.name, "has changed", names, outcome.words);
        if (repeats || !(outcome.kind === "done" || outcome.error instanceof RolledBack))
          this.#unknown.push(...wishes.filter(({ id }) => id !== undefined));
      },
    );
  }

  #subscribe(replica: Replica): void {
    const world = this.#world;
    if (world.subscribers.length >= mostSubscribers) return;
    const subscriber = world.subscriber({ ordered: this.#rng.chance(0.3) });
    const eventTypes = this.#rng.pick(filters);
    this.#attempt(
      replica,
      () => world.subscribe(replica, subscriber, eventTypes),
      () => {},
    );
  }

  #manage(replica: Replica, request: Request, subject: Subscriber, phase: Phase): void {
    const world = this.#world;
    const rng = this.#rng;
    const { subscriptions, replays } = replica.launched.hooks;
    const id = subject.id!;
    let next = phase;
    let act: () => Promise<SubscriptionRecord | undefined>;
    let done = (): void => {};
    switch (request) {
      case "pause or resume": {
        const pauses = phase.status === "active";
        next = { ...phase, status: pauses ? "paused" : "active" };
        act = () => (pauses ? subscriptions.pause(id) : subscriptions.resume(id));
        break;
      }
      case "disable or enable": {
        const disables = phase.status !== "disabled";
        next = { ...phase, status: disables ? "disabled" : "active" };
        act = () => (disables ? subscriptions.disable(id) : subscriptions.enable(id));
        break;
      }
      case "change filter":
        next = { ...phase, eventTypes: rng.pick(filters) };
        act = () => subscriptions.update(id, { eventTypes: next.eventTypes });
        break;
      case "change url": {
        const url = `https://${subject.receiver.host}/v${rng.int(2, 99)}`;
        act = () => subscriptions.update(id, { url });
        break;
      }
      case "change limit": {
        const maxInFlight = rng.chance(0.3) ? null : rng.int(1, 4);
        // Neither the old nor the new one surely holds.
        subject.maxInFlight = undefined;
        act = () => subscriptions.update(id, { maxInFlight });
        break;
      }
      case "rotate": {
        const { receiver } = subject;
        const overlapMs = rng.pick([0, 4_000, 60_000]);
        const secret = `whsec_${Buffer.from(rng.bytes(24)).toString("base64")}`;
        receiver.rotating(secret, overlapMs);
        done = () => receiver.rotated(secret, overlapMs);
        act = () => subscriptions.rotateSecret(id, { overlapMs, secret });
        break;
      }
      case "replay":
      case "replay what is missing": {
        if (subject.ordered) return;
        const status = request === "replay" ? rng.pick(replayed) : (["missing"] as const);
        subject.replays.push({ from: world.time.now, missing: status.includes("missing") });
        act = async () => {
          await replays.create({ subscriptionId: id, since: new Date(world.time.start), status });
          return undefined;
        };
        break;
      }
      default:
        next = { ...phase, status: "deleted" };
        act = async () => {
          await subscriptions.delete(id);
          return undefined;
        };
    }
    subject.busy = true;
    if (next !== phase) subject.mayBecome(next, world.time.now);
    world.journal.note(
      replica.process.name,
      `asks to ${request}:`,
      subject.key,
      next.status,
      next.eventTypes.join(" "),
    );
    this.#attempt(replica, act, (outcome) => {
      world.journal.note(replica.process.name, request, subject.key, outcome.words);
      const { error } = outcome;
      const refused = isHookwellError(error) && !(error instanceof StorageError);
      if (refused && next === phase) subject.busy = false;
      if (outcome.kind !== "done") return;
      done();
      subject.busy = false;
      if (next === phase) return;
      const record = outcome.value;
      subject.is(record ? { status: record.status, eventTypes: record.eventTypes } : next, world.time.now);
    });
  }

  /** An operator retries or cancels a delivery that was seen on the wire. */
  #byHand(replica: Replica, what: "retry" | "cancel"): void {
    const { network, time, journal, byHand } = this.#world;
    if (network.attempts.length === 0) return;
    const recent = network.attempts.slice(-40);
    // What has been received can be sent again, but not cancelled.
    const open = what === "cancel" ? recent.filter((attempt) => !isAnswered(attempt)) : recent;
    const { headers, receiver } = this.#rng.pick(open.length > 0 ? open : recent);
    if (receiver.name === "s0" || receiver.name === "s5") return;
    const id = headers.get("x-hookwell-delivery")!;
    const deed = { what, from: time.now, until: Number.POSITIVE_INFINITY };
    byHand.set(id, [...(byHand.get(id) ?? []), deed]);
    const { deliveries } = replica.launched.hooks;
    this.#attempt(
      replica,
      () => deliveries[what](id),
      (outcome) => {
        journal.note(replica.process.name, what, id, outcome.words);
        deed.until = time.now;
      },
    );
  }

  /** Finds out what is not known, ends what keeps deliveries back, and answers who is still subscribed. */
  async settle(): Promise<void> {
    const world = this.#world;
    const { hooks } = world.replicas[0]!.launched;
    const { items } = await hooks.subscriptions.list({}, { limit: 100 });
    for (const subscriber of world.subscribers) {
      const record = items.find(({ externalId }) => externalId === subscriber.key);
      const { now } = world.time;
      subscriber.busy = false;
      if (!record) {
        subscriber.is({ status: "deleted", eventTypes: [] }, now);
        continue;
      }
      subscriber.id = record.id;
      subscriber.is({ status: record.status, eventTypes: record.eventTypes }, now);
      if (record.status === "active") continue;
      subscriber.mayBecome({ status: "active", eventTypes: record.eventTypes }, now);
      await (record.status === "paused"
        ? hooks.subscriptions.resume(record.id)
        : hooks.subscriptions.enable(record.id));
      subscriber.is({ status: "active", eventTypes: record.eventTypes }, now);
    }
  }

  /** Runs something in a process and tells what became of it, also when the process died over it. */
  #attempt<T>(replica: Replica, act: () => Promise<T>, tell: (outcome: Outcome<T>) => void): void {
    this.#underWay++;
    let told = false;
    const done = (outcome: Outcome<T>): void => {
      if (told) return;
      told = true;
      this.#underWay--;
      tell(outcome);
    };
    act().then(
      (value) => done({ kind: "done", value, words: "done" }),
      (error: unknown) =>
        done({
          kind: "error",
          error,
          words: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
        }),
    );
    replica.process.onCrash(() => done({ kind: "died", words: "nobody knows" }));
  }
}

type Outcome<T> =
  | { readonly kind: "done"; readonly value: T; readonly error?: undefined; readonly words: string }
  | { readonly kind: "error"; readonly error: unknown; readonly words: string }
  | { readonly kind: "died"; readonly error?: undefined; readonly words: string };
