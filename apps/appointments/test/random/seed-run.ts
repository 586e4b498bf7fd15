import { expect } from "vitest";
import { type Dice, dice } from "./dice.ts";
import { markHosts, type Picture, pictureOf, type SeenBooking } from "./picture.ts";
import { type Death, deaths, type Stage } from "./stage.ts";
import {
  type EntryPointName,
  entryPoints,
  type KnownBooking,
  type KnownInvitation,
  possible,
  possibleRaces,
  races,
  type Scene,
} from "./steps.ts";

const day = 86_400_000;
const minute = 60_000;
const epoch = Date.parse("2031-01-06T06:00:00Z");
/** Every seed has these days for itself, so that it runs alone as it runs among others. */
const daysOfSeed = 21;

/** What seeds went through, together. */
export interface Tally {
  readonly transitions: Record<EntryPointName, number>;
  bookings: number;
  requests: number;
  repeats: number;
  retriedByOperator: number;
  faults: number;
}

export function newTally(): Tally {
  const names = Object.keys(entryPoints) as EntryPointName[];
  const transitions = Object.fromEntries(names.map((name) => [name, 0])) as Record<EntryPointName, number>;
  return { transitions, bookings: 0, requests: 0, repeats: 0, retriedByOperator: 0, faults: 0 };
}

type Fault = "none" | "capture" | "commit" | Extract<Death, "before the commit" | "after the commit">;
const faults: readonly (readonly [number, Fault])[] = [
  [70, "none"],
  [6, "capture"],
  [6, "commit"],
  [5, "before the commit"],
  [7, "after the commit"],
];

/** What the tables say of this seed. */
interface Tables {
  readonly bookings: ReadonlyMap<string, SeenBooking>;
  readonly known: readonly Omit<KnownBooking, "manage">[];
  readonly invitations: readonly Omit<KnownInvitation, "token">[];
}

/**
 * Books, moves and cancels what the seed says, under its faults, and then compares what a receiver knows with the
 * tables. @throws Error that says which seed, and what it did
 */
export async function runSeed(stage: Stage, seed: number, tally: Tally): Promise<void> {
  const run = new SeedRun(stage, seed, tally);
  try {
    await run.steps();
    await run.settle();
    await run.compare();
  } catch (error) {
    const journal = run.journal.join("\n  ");
    throw new Error(`Seed ${seed} (HOOKWELL_SEED=${seed} runs it alone) went wrong after\n  ${journal}`, {
      cause: error,
    });
  }
}

class SeedRun {
  readonly journal: string[] = [];
  readonly #stage: Stage;
  readonly #seed: number;
  readonly #tally: Tally;
  readonly #dice: Dice;
  readonly #begin: number;
  readonly #firstRequest: number;
  readonly #manage = new Map<string, string>();
  readonly #tokens = new Map<string, string>();
  #tables: Tables = { bookings: new Map(), known: [], invitations: [] };
  #made = 0;

  constructor(stage: Stage, seed: number, tally: Tally) {
    this.#stage = stage;
    this.#seed = seed;
    this.#tally = tally;
    this.#dice = dice(seed);
    this.#begin = epoch + seed * daysOfSeed * day;
    this.#firstRequest = stage.receiver.requests.length;
    const wait = this.#begin - stage.world.clock.now().getTime();
    if (wait < 0) throw new Error(`Seed ${seed} comes after a later one.`);
    stage.world.clock.advance(wait);
  }

  async steps(): Promise<void> {
    // Choices of its own: requests come in any order, and the steps must not depend on that.
    this.#stage.misbehave(dice(-this.#seed));
    const count = 12 + this.#dice.int(6);
    for (let index = 0; index < count; index++) {
      await this.#dice.weigh<() => Promise<void>>([
        [index < 2 ? 0 : 15, () => this.#poll()],
        [2, () => this.#restart()],
        [index < 2 ? 0 : 9, () => this.#race()],
        [71, () => this.#enter()],
      ])();
      if (this.#stage.isDead()) await this.#restart();
      this.#stage.dieAt(undefined);
      this.#stage.world.clock.advance(this.#dice.int(180) * minute);
    }
  }

  /**
   * The faults end, and the last invitations. Time passes until nothing is left to do; what failed for good is
   * retried by the operator.
   */
  async settle(): Promise<void> {
    const stage = this.#stage;
    stage.misbehave(undefined);
    stage.world.clock.advance(this.#begin + (daysOfSeed - 1.9) * day - stage.world.clock.now().getTime());
    await stage.life.sweep();
    await this.#look();
    for (let round = 0; round < 36; round++) {
      stage.world.clock.advance(60 * minute);
      const { hooks } = stage.life;
      const done = await stage.poll();
      const failed = await hooks.deliveries.list({ projectId: "live", status: "failed" }, { limit: 100 });
      for (const { id } of failed.items) await hooks.deliveries.retry(id);
      this.#tally.retriedByOperator += failed.items.length;
      const pending = await hooks.deliveries.list({ projectId: "live", status: "pending" }, { limit: 1 });
      if (pending.items.length === 0 && done?.remaining.newEvents === 0) return;
    }
    throw new Error("After 36 hours without faults there is still something to deliver.");
  }

  async compare(): Promise<void> {
    await this.#look();
    const requests = this.#stage.receiver.requests.slice(this.#firstRequest);
    const picture: Picture = pictureOf(requests);
    expect(Object.fromEntries(picture.bookings)).toEqual(Object.fromEntries(this.#tables.bookings));
    for (const [id, { revision }] of this.#tables.bookings)
      expect(picture.revisions.get(id)).toEqual(Array.from({ length: revision }, (_, index) => index + 1));
    const statuses = this.#tables.invitations.map(({ id, status }) => [id, status]);
    expect(Object.fromEntries(picture.invitations)).toEqual(Object.fromEntries(statuses));
    this.#tally.bookings += this.#tables.bookings.size;
    this.#tally.requests += requests.length;
    this.#tally.repeats += picture.repeats;
  }

  get #scene(): Scene {
    return {
      stage: this.#stage,
      dice: this.#dice,
      begin: this.#begin,
      bookings: this.#tables.known.map((booking) => {
        const manage = this.#manage.get(booking.id);
        return manage === undefined ? booking : { ...booking, manage };
      }),
      invitations: this.#tables.invitations.map((invitation) => {
        const token = this.#tokens.get(invitation.id);
        return token === undefined ? invitation : { ...invitation, token };
      }),
      learn: (secret) => {
        if ("manage" in secret) this.#manage.set(secret.of, secret.manage);
        else this.#tokens.set(secret.of, secret.token);
      },
      unique: () => `s${this.#seed}-${++this.#made}`,
    };
  }

  async #enter(): Promise<void> {
    const scene = this.#scene;
    const name = this.#dice.weigh(possible(scene));
    const fault = this.#dice.weigh(faults);
    const mend = await this.#break(fault);
    let status: number;
    try {
      status = await entryPoints[name](scene);
    } finally {
      await mend();
    }
    const hasDied = this.#stage.isDead();
    this.journal.push(`${name}: ${status}${fault === "none" ? "" : `, fault: ${fault}`}`);
    if (fault !== "none") this.#tally.faults++;
    const changed = await this.#look();
    if (changed) this.#tally.transitions[name]++;
    const isLate = fault === "after the commit";
    if (fault !== "none" && !isLate) expect(changed, "nothing is changed without its event").toBe(false);
    if (isLate && hasDied) expect(changed, "what was committed stays").toBe(true);
    if (fault === "none") expect([200, 201, 400, 404, 409, 410]).toContain(status);
    if (fault === "none" && status === 201) expect(changed).toBe(true);
    if (!changed && status < 300)
      expect(name, "only a move to the same time changes nothing").toMatch(/^reschedule|^sweep/);
  }

  async #break(fault: Fault): Promise<() => Promise<void>> {
    const { world } = this.#stage;
    if (fault === "capture") return await world.breakCapture();
    if (fault === "commit") return await world.breakCommit();
    if (fault !== "none") this.#stage.dieAt(fault);
    return async () => {};
  }

  async #race(): Promise<void> {
    const scene = this.#scene;
    const candidates = possibleRaces(scene);
    if (candidates.length === 0) return;
    const name = this.#dice.weigh(candidates);
    const results = await races[name](scene);
    this.journal.push(`${name}: ${results.map(([, status]) => status).join(" and ")}`);
    await this.#look();
    const winners = results.filter(([, status]) => status < 300);
    for (const [, status] of results) expect([200, 201, 404, 409, 410]).toContain(status);
    if (name !== "a move and a cancel") expect(winners.length).toBeLessThan(2);
    for (const [winner] of winners) this.#tally.transitions[winner]++;
  }

  async #poll(): Promise<void> {
    const stage = this.#stage;
    const death = this.#dice.chance(0.25) ? this.#dice.pick(deaths.slice(2)) : undefined;
    stage.dieAt(death);
    await stage.poll();
    if (stage.isDead()) this.#tally.faults++;
    this.journal.push(`poll${stage.isDead() ? `, died ${death}` : ""}`);
  }

  async #restart(): Promise<void> {
    await this.#stage.restart();
    // It sweeps when it starts; this waits until it did.
    await this.#stage.life.sweep();
    await this.#look();
    this.journal.push("restart");
  }

  /** Looks at the tables again. Answers whether anything changed that no sweep did; what a sweep did is counted. */
  async #look(): Promise<boolean> {
    const before = this.#tables;
    const now = await readTables(this.#stage, this.#begin);
    this.#tables = now;
    const statuses = new Map(before.invitations.map(({ id, status }) => [id, status]));
    let changed = false;
    for (const { id, status } of now.invitations) {
      if (statuses.get(id) === status) continue;
      if (status === "expired") this.#tally.transitions["sweep expired invitations"]++;
      else changed = true;
    }
    for (const [id, { revision }] of now.bookings) {
      const old = before.bookings.get(id)?.revision ?? 0;
      if (revision !== old) changed = true;
    }
    return changed;
  }
}

async function readTables({ world }: Stage, begin: number): Promise<Tables> {
  const since = new Date(begin).toISOString();
  const rows = await world.db.selectFrom("bookings").selectAll().where("created_at", ">=", since).execute();
  const hosts = await world.db
    .selectFrom("booking_hosts")
    .innerJoin("bookings", "bookings.id", "booking_hosts.booking_id")
    .select(["booking_hosts.booking_id", "booking_hosts.user_id as id", "booking_hosts.is_primary"])
    .where("bookings.created_at", ">=", since)
    .execute();
  const invitations = await world.db
    .selectFrom("scheduling_invitations")
    .select(["id", "status", "expires_at as expiresAt"])
    .where("created_at", ">=", since)
    .orderBy("created_at")
    .execute();
  const hostsOf = Map.groupBy(hosts, (host) => host.booking_id);
  return {
    bookings: new Map(
      rows.map(({ id, status, start_at, end_at, revision }) => {
        const own = hostsOf.get(id) ?? [];
        const marked = markHosts(own.map((host) => ({ id: host.id, is_primary: host.is_primary === 1 })));
        return [id, { status, start_at, end_at, revision, hosts: marked }];
      }),
    ),
    known: rows
      .sort((a, b) => (a.created_at < b.created_at ? -1 : 1))
      .map((row) => ({
        id: row.id,
        hostId: row.host_id,
        isOrdinary: row.scheduling_invitation_id === null,
        status: row.status,
        startAt: row.start_at,
      })),
    invitations,
  };
}
