import type { Delivery, Outcome } from "../../src/model/delivery.ts";
import { isHookwellError } from "../../src/model/errors.ts";
import type { CaptureInput } from "../../src/model/event.ts";
import type { HoldSelector } from "../../src/model/hold.ts";
import { deliveryId } from "../../src/model/ids.ts";
import type { LanePolicy } from "../../src/model/lane-policy.ts";
import { coveringFilters } from "../../src/model/matching.ts";
import type { SubscriptionPatch } from "../../src/model/subscription.ts";
import type { OutboxStore, RetentionPolicy, Scope } from "../../src/store/contract.ts";
import { plain } from "../../src/testing/contract/checks.ts";
import type { StoreHarness, StoreUnderTest } from "../../src/testing/contract/harness.ts";
import type { Command } from "./store-commands.ts";

type Call<Do extends Command["do"]> = Extract<Command, { do: Do }>;
class Rollback extends Error {}

const own: Scope & { kind: "own" } = { kind: "own" };
const eventTypes = ["user.created", "user.updated", "booking.created"];
const routes = [...eventTypes, "*"];
const day = 86_400_000;
const policies: Readonly<Record<"none" | "short" | "long", RetentionPolicy | null>> = {
  none: null,
  short: { deliveredMs: 60_000, failedMs: 2 * 60_000, eventsMs: 60_000, heldMs: 60_000 },
  long: { deliveredMs: 30 * day, failedMs: 90 * day, eventsMs: 30 * day, heldMs: 30 * day },
};

const replayLimits = {
  look: 1_000,
  most: 2,
  pending: 100,
  waitMs: 50,
  missingMs: 30 * day,
  keepMs: 30 * day,
};

const lanePolicies: Readonly<Record<"none" | "breaker" | "full", LanePolicy>> = {
  none: {},
  breaker: { breaker: { failures: 2, probeMs: 1_000, probeMaxMs: 3_000 } },
  full: {
    breaker: { failures: 3, probeMs: 1_000, probeMaxMs: 3_000 },
    disable: { failures: 2, overMs: 1_000 },
    report: true,
  },
};

/** One store that the commands run on, and what it has answered so far. */
export class StoreSystem {
  readonly name: string;
  readonly #subject: StoreUnderTest;
  readonly #now: () => Date;
  #store: OutboxStore;
  /** Rows as they were claimed, in order: commands name a claim by its place, as tokens differ. */
  readonly #claims: Delivery[] = [];
  readonly #rows: string[] = [];
  /** The token that the last request under a key was begun with. */
  readonly #requestTokens = new Map<string, string>();
  #replays = 0;
  #cursor = "";
  #staleBefore = 0;

  private constructor(name: string, subject: StoreUnderTest, now: () => Date) {
    this.name = name;
    this.#subject = subject;
    this.#store = subject.store;
    this.#now = now;
  }

  static async make(name: string, harness: StoreHarness, now: () => Date): Promise<StoreSystem> {
    let made = 0;
    return new StoreSystem(name, await harness.make({ now, idFunc: () => `end_${++made}` }), now);
  }

  close(): Promise<void> {
    return this.#subject.close();
  }

  /** Runs a command; answers its result or the code of its error, in a form that is equal between stores. */
  async run(command: Command): Promise<unknown> {
    try {
      return plain(await this.#run(command));
    } catch (error) {
      if (isHookwellError(error) && error.code !== "storage") return { refused: error.code };
      throw error;
    }
  }

  /** All that can be read. */
  async everything(): Promise<unknown> {
    const page = { limit: 100 };
    const { items: rows } = await this.#store.listDeliveries({}, page);
    const details: unknown[] = [];
    for (const { id } of rows) {
      const { leaseToken, ...row } = (await this.#store.get(id))!;
      details.push([await this.#store.getDelivery(id, {}), row, leaseToken !== undefined]);
    }
    return plain({
      rows,
      details,
      events: await this.#store.listEvents({}, page),
      replays: await this.#store.replays.list({}, page),
      subscriptions: await this.#store.listSubscriptions({}, page),
      deleted: await this.#store.listSubscriptions({ status: "deleted" }, page),
      active: await this.#store.listActiveSubscriptions("live"),
      lag: await this.#store.lag(null),
      remaining: await this.#store.countRemaining(1_000),
      stats: await this.#store.stats(undefined, null),
      statsOfProject: await this.#store.stats("live", null),
      taken: await this.#store.takeNew(routes, 100, null),
      holds: await this.#store.listHolds(),
      stale: this.#staleBefore + this.#store.staleOutcomes,
    });
  }

  async #run(command: Command): Promise<unknown> {
    switch (command.do) {
      case "subscribe":
        return this.#subscribe(command);
      case "addSubscription":
        return this.#addSubscription(command);
      case "update":
        return this.#update(command);
      case "rotate": {
        const rotation = { secret: `secret ${command.version}`, overlapMs: command.overlapMs };
        return this.#store.rotateSecret(own, lane(command.lane), rotation, {});
      }
      case "status":
        return this.#status(command);
      case "enqueue":
        return this.#enqueue(command);
      case "capture":
        return this.#capture(command);
      case "dispatch":
        return this.#dispatch(command);
      case "failDispatch":
        return this.#store.failDispatch(eventKey(command.event), "it broke", command.retry, null);
      case "release":
        return this.#store.releaseEvent(own, eventKey(command.event));
      case "claim":
        return this.#claim(command);
      case "claimDue":
        return this.#claimed(await this.#store.claimDue(this.#now(), command.limit));
      case "record":
        return this.#record(command);
      case "mark":
        return this.#mark(command);
      case "retry":
        return this.#row(command.row, (id) => this.#store.retryDelivery(own, id, {}, null));
      case "cancel":
        return this.#row(command.row, (id) => this.#store.cancelDelivery(own, id, {}, null));
      case "hold":
        return this.#store.setHold(
          own,
          { id: `hld_${command.what}`, selector: selector(command.what) },
          null,
        );
      case "unhold":
        return this.#release(command);
      case "replay":
        return this.#replay(command);
      case "advance":
        return this.#store.replays.advance({ ...replayLimits, pending: command.pending }, null);
      case "fill":
        return this.#fill(command);
      case "stop":
        return this.#store.replays.stop(own, `rpl_${command.replay}`, {}, null);
      case "cancelMany":
        return this.#cancelMany(command);
      case "maintain": {
        const result = await this.#store.maintain(policies[command.policy], 1_000, null);
        return { ...result, failed: sorted(result.failed) };
      }
      case "look":
        return this.#look(command);
      case "request":
        return this.#request(command);
      case "restart":
        return this.#restart();
      case "step":
        return undefined;
    }
  }

  async #replay({ lane: number, statuses }: Call<"replay">): Promise<unknown> {
    // What is missing can only be told of one subscription.
    const of = number ?? (statuses.includes("missing") ? 0 : undefined);
    const work = {
      selection: of === undefined ? {} : { subscriptionId: lane(of) },
      statuses,
      since: new Date(0),
      until: this.#now(),
    };
    const { count } = await this.#store.replays.count(work, undefined, replayLimits, null);
    return this.#store.replays.create(own, { ...work, id: `rpl_${this.#replays++}`, count });
  }

  async #fill({ fails }: Call<"fill">): Promise<unknown> {
    const taken = await this.#store.replays.takeMissing(routes, 100, null);
    const [first] = taken;
    if (fails)
      return (
        first && this.#store.replays.failMissing(first, "it broke", first.tries > 1 ? null : 1_000, null)
      );
    const fills = taken.map(({ replayId, projectId, eventId, event, match }) => ({
      replayId,
      projectId,
      eventId,
      ...(event &&
        match && {
          delivery: {
            id: deliveryId(eventId, match.subscriptionId),
            subscriptionId: match.subscriptionId,
            endpointId: match.endpointId,
            ...(match.ordered && { ordered: true as const }),
            ...(!event.fannedOut && {
              body: { variant: "late", bytes: Buffer.from(`{"late":"${eventId}"}`) },
            }),
          },
        }),
    }));
    const made = await this.#store.replays.fillMissing(fills, null);
    for (const { delivery } of fills)
      if (delivery && !this.#rows.includes(delivery.id) && (await this.#store.get(delivery.id)))
        this.#rows.push(delivery.id);
    return { taken, made };
  }

  async #cancelMany({ lane: number, type, dryRun }: Call<"cancelMany">): Promise<number> {
    const selection = {
      ...(number !== undefined && { subscriptionId: lane(number) }),
      ...(type && { type }),
    };
    let count = 0;
    for (let after: Awaited<ReturnType<OutboxStore["replays"]["cancelWindow"]>>["next"]; ; ) {
      const window = await this.#store.replays.cancelWindow(selection, {}, after, { look: 3, dryRun }, null);
      count += window.count;
      after = window.next;
      if (!after) return count;
    }
  }

  #subscribe(command: Call<"subscribe">): Promise<unknown> {
    const id = lane(command.lane);
    return this.#store.createSubscription(own, {
      id,
      projectId: "live",
      tenantId: command.tenant,
      ownerId: command.owner,
      url: `https://${id.replace("_", "-")}.example/hook`,
      eventTypes: command.types,
      ordering: command.ordering,
      rateLimit: command.rate,
      maxInFlight: command.inFlight,
      secret: `whsec_${id}`,
    });
  }

  async #addSubscription(command: Call<"addSubscription">): Promise<void> {
    const id = lane(command.lane);
    const url = `https://added-${command.version}.example/`;
    const secret = `secret ${command.version}`;
    await this.#store.addSubscription({
      id,
      projectId: "live",
      url,
      secret,
      eventTypes: [],
      active: command.active,
    });
  }

  #update({ lane: number, change, version }: Call<"update">): Promise<unknown> {
    const patch = {
      url: { url: `https://moved-${version}.example/` },
      headers: { headers: version === 0 ? null : { "x-version": String(version) } },
      types: { eventTypes: version === 0 ? [] : ["user.*"] },
      text: { description: `text ${version}\u0000`, metadata: version === 0 ? null : { v: String(version) } },
      limits: version === 0 ? { rateLimit: null, maxInFlight: null } : { maxInFlight: version },
      order: { ordering: version === 0 ? "none" : "subject" },
      merge: {
        merge: { metadata: { [`m${version}`]: version === 0 ? null : "v" }, headers: { "x-version": null } },
      },
      nothing: {},
    }[change] as SubscriptionPatch;
    return this.#store.updateSubscription(own, lane(number), patch, {});
  }

  #status({ lane: number, status, from }: Call<"status">): Promise<unknown> {
    return this.#store.setSubscriptionStatus(own, lane(number), status, undefined, {}, { from });
  }

  async #enqueue(command: Call<"enqueue">): Promise<void> {
    const id = `dlv_q${command.row}`;
    const now = this.#now();
    await this.#store.enqueueDelivery({
      id,
      eventId: `evt_${command.event}`,
      subscriptionId: lane(command.lane),
      url: `https://given-${command.row}.example/`,
      secret: "given",
      payload: Buffer.from(`{"row":${command.row}}`),
      status: "pending",
      attempts: 0,
      nextAttemptAt: new Date(now.getTime() + command.due * 1_000),
      createdAt: now,
      updatedAt: now,
      type: "user.created",
      projectId: "live",
    });
    this.#rows.push(id);
  }

  async #capture({ events, within }: Call<"capture">): Promise<unknown> {
    // How a type fans out is set once: a deploy may change it between two calls, nothing changes it inside one.
    const emitOf = (number: number): boolean => events.find(({ event }) => event === number)!.emit;
    const inputs = events.map(({ event, content }) => this.#input({ event, content, emit: emitOf(event) }));
    const result = await this.#captureWithin(inputs, within);
    if (result === "rolled back") return result;
    // Rows that capture made may be claimed from now on, and must be from the dispatch on: the stores are only
    // compared where the contract leaves no choice.
    const keys = inputs.filter((input) => input.fanOut).map(({ projectId, id }) => ({ projectId, id }));
    const fanned = [];
    for (const key of keys)
      if ((await this.#store.getEvent(key.id, key))?.fannedOut)
        fanned.push({ ...key, bodies: [], deliveries: [] });
    await this.#store.dispatch(fanned, null);
    // The same with rows that a repeated emit added: the next claim finds them, whatever it takes.
    if (keys.length > 0) await this.#store.claim({ now: null, limit: 1, leaseMs: 1_000, room: 0 });
    const { items } = await this.#store.listDeliveries({}, { limit: 100 });
    for (const { id } of items) if (!this.#rows.includes(id)) this.#rows.push(id);
    return result;
  }

  async #captureWithin(inputs: readonly CaptureInput[], within: Call<"capture">["within"]): Promise<unknown> {
    if (within === "own") return this.#store.capture(own, inputs);
    try {
      return await this.#subject.transaction(async (scope) => {
        const result = await this.#store.capture(scope, inputs);
        if (within === "rollback") throw new Rollback();
        return result;
      });
    } catch (error) {
      if (error instanceof Rollback) return "rolled back";
      throw error;
    }
  }

  #input({ event, content, emit }: Call<"capture">["events"][number]): CaptureInput {
    const id = `evt_${event}`;
    const type = eventTypes[(event + content) % eventTypes.length]!;
    const hasRevision = event % 3 !== 0;
    return {
      projectId: "live",
      id,
      type,
      tenantId: event % 4 === 1 ? "acme" : undefined,
      subject: hasRevision ? `user:${event % 2}` : undefined,
      revision: hasRevision ? (event + content) % 3 : undefined,
      audience: event === 6 ? ["u1"] : undefined,
      occurredAt: this.#now(),
      data: `{"content":${content}}`,
      route: type,
      contentHash: `content ${content}`,
      fanOut: emit ? { body: `{"id":"${id}"}`, filters: coveringFilters(type) } : undefined,
    };
  }

  async #dispatch({ limit, claims }: Call<"dispatch">): Promise<unknown> {
    const events = await this.#store.takeNew(routes, limit, null);
    const matches = await this.#store.matchSubscriptions(
      events.map((event) => ({ ...event, filters: coveringFilters(event.type) })),
    );
    const items = events.map((event, index) => {
      const deliveries = (event.fannedOut ? [] : matches[index]!).map(
        ({ subscriptionId, endpointId, ordered }) => ({
          id: deliveryId(event.id, subscriptionId),
          subscriptionId,
          endpointId,
          variant: "v",
          ...(ordered && { ordered }),
        }),
      );
      const bodies = [{ variant: "v", bytes: Buffer.from(`{"event":"${event.id}"}`) }];
      return { projectId: event.projectId, id: event.id, bodies, deliveries, patch: `{"n":${index}}` };
    });
    const { dispatched: done, deliveries } = await this.#store.dispatch(items, null, claims);
    for (const { deliveries } of items)
      for (const { id } of deliveries) if (!this.#rows.includes(id)) this.#rows.push(id);
    const matched = matches.map((list) => list.map((match) => match.subscriptionId));
    return { events, matches: matched, done, claimed: this.#claimed(deliveries) };
  }

  async #claim(command: Call<"claim">): Promise<unknown> {
    const { deliveries, cursor, againInMs } = await this.#store.claim({
      now: null,
      limit: command.limit,
      leaseMs: command.leaseMs,
      cursor: command.follow ? this.#cursor : undefined,
      room: command.room,
      rooms: new Map(command.rooms.map(([number, room]) => [lane(number), room])),
    });
    this.#cursor = cursor;
    return { claimed: this.#claimed(deliveries), cursor, againInMs };
  }

  #claimed(deliveries: readonly Delivery[]): unknown {
    this.#claims.push(...deliveries);
    return deliveries.map(({ leaseToken, ...row }) => ({ ...row, hasToken: leaseToken !== undefined }));
  }

  async #record(command: Call<"record">): Promise<unknown> {
    if (this.#claims.length === 0) return undefined;
    const outcomes = new Map<string, Outcome>();
    for (const given of command.outcomes) {
      const claimed = this.#claims[given.claim % this.#claims.length]!;
      outcomes.set(claimed.id, this.#outcome(claimed, given));
    }
    const policy = lanePolicies[command.policy];
    const { recorded, stale, lanes, readied } = await this.#store.record(
      [...outcomes.values()],
      null,
      policy,
    );
    return { recorded: sorted(recorded), stale: [...stale].sort(), lanes, readied };
  }

  #outcome(claimed: Delivery, given: Call<"record">["outcomes"][number]): Outcome {
    const leaseToken = given.token === "right" ? claimed.leaseToken! : "00000000-0000-4000-8000-000000000000";
    const proof = { id: claimed.id, leaseToken };
    const exchange = {
      startedAt: this.#now(),
      durationMs: 5,
      statusCode: 500,
      errorCode: "http_500",
      error: "no\u0000",
    };
    const error = { reason: "attempts_exhausted", errorCode: "http_500", error: "no" };
    switch (given.kind) {
      case "delivered":
        return {
          ...proof,
          kind: "delivered",
          exchange: { startedAt: this.#now(), durationMs: 7, statusCode: 204 },
        };
      case "retry":
        return {
          ...proof,
          kind: "retry",
          exchange,
          delayMs: given.delay,
          holdLaneMs: given.hold,
          breakable: given.breakable,
        };
      case "failed":
        return {
          ...proof,
          kind: "failed",
          exchange,
          ...error,
          holdLaneMs: given.hold,
          breakable: given.breakable,
        };
      case "lost":
        return { ...proof, kind: "failed", ...error };
      case "gone":
        return { ...proof, kind: "gone", exchange };
      case "released":
        return { ...proof, kind: "released" };
    }
  }

  async #mark(command: Call<"mark">): Promise<void> {
    const claimed = this.#claims[command.claim % this.#claims.length];
    const id = claimed?.id ?? "dlv_none";
    const token = { right: claimed?.leaseToken, stale: "stale", missing: undefined }[command.token];
    const now = this.#now();
    if (command.kind === "delivered") await this.#store.markDelivered(id, now, token);
    else if (command.kind === "failed") await this.#store.markFailed(id, 3, "final\ud800", token);
    else await this.#store.reschedule(id, 2, "later", new Date(now.getTime() + command.delay), token);
  }

  async #row(number: number, call: (id: string) => Promise<unknown>): Promise<unknown> {
    return call(this.#rows[number % this.#rows.length] ?? "dlv_none");
  }

  /** What was set aside is given back before anything else, as there is nothing aside in memory. */
  async #release({ what, giveBack }: Call<"unhold">): Promise<unknown> {
    const released = await this.#store.releaseHold(own, selector(what));
    while ((await this.#store.giveBackHeld(giveBack, null)).more);
    return { released, left: await this.#store.countToGiveBack(10) };
  }

  /** A token is a store's own: `late` ends the request with the one before. */
  async #request(command: Call<"request">): Promise<unknown> {
    const { key, content, repeatable, leaseMs, end } = command;
    const name = { owner: "key_1", key: `k${key}` };
    const request = { ...name, fingerprint: `f${content}`, leaseMs, repeatable };
    const begun = await this.#store.beginRequest(request, null);
    const token = begun.state === "begun" ? begun.token : "none";
    const given = end === "late" ? (this.#requestTokens.get(name.key) ?? "none") : token;
    this.#requestTokens.set(name.key, token);
    const { token: _token, ...seen } = { token, ...begun };
    if (end === "abandon") await this.#store.abandonRequest(name, given);
    if (end === "never" || end === "abandon") return seen;
    return [seen, await this.#store.finishRequest(name, given, `answer ${end} ${content}`)];
  }

  async #look(command: Call<"look">): Promise<unknown> {
    const { limit, tenant, status, outcome } = command;
    const first = await this.#store.listDeliveries({ tenantId: tenant, status }, { limit });
    return {
      first,
      second:
        first.next &&
        (await this.#store.listDeliveries({ tenantId: tenant, status }, { limit, after: first.next })),
      events: await this.#store.listEvents({ tenantId: tenant, outcome }, { limit }),
      lag: await this.#store.lag(null),
      remaining: await this.#store.countRemaining(limit),
    };
  }

  /** Goes on with another store object, as after a restart of the process. */
  async #restart(): Promise<void> {
    if (!this.#subject.reopen) return;
    this.#staleBefore += this.#store.staleOutcomes;
    this.#store = await this.#subject.reopen();
  }
}

function lane(number: number): string {
  return `sub_${number}`;
}

function selector(what: string): HoldSelector {
  if (what === "all") return { all: true };
  return what === "live" || what === "other" ? { projectId: what } : { type: what };
}

function eventKey(number: number): { readonly projectId: string; readonly id: string } {
  return { projectId: "live", id: `evt_${number}` };
}

function sorted<T extends { readonly id: string }>(rows: readonly T[]): T[] {
  return [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
}
