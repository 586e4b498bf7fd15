import type { DrainResult } from "hookwell";
import { type ReceivedRequest, type Receiver, startReceiver } from "hookwell/testing";
import type { AppHooks } from "../../src/hooks.ts";
import { type BookingWorld, ok, openBookingWorld, testClock } from "../bookings/support/booking-world.ts";
import { instead, type Life, openLife } from "../crash/life.ts";
import { type Client, clientOf } from "../support/client.ts";
import type { TestDialect, UserClient } from "../support/world.ts";
import type { Dice } from "./dice.ts";

/** Where a process dies. */
export const deaths = [
  "before the commit",
  "after the commit",
  "before the dispatch",
  "after the dispatch",
  "before a send",
  "after a send",
] as const;
export type Death = (typeof deaths)[number];

/** Everything that seeds share: a database, hosts with hours, event types, a receiver, and a process that may die. */
export interface Stage {
  readonly world: BookingWorld;
  /** The creator of invitations, who hosts nothing. */
  readonly creator: UserClient;
  readonly hosts: readonly UserClient[];
  /** Round robin: two rotate, one is required. */
  readonly teamTypeId: string;
  readonly soloTypeId: string;
  /** Of appointments that can be given to another host. */
  readonly ordinarySlug: string;
  readonly receiver: Receiver;
  /** Times that it died so far. */
  readonly deaths: number;
  /** With this key, or as a customer, to the process that lives now. */
  client(key?: string): Client;
  /** The present process. */
  readonly life: Life;
  /** The next time it comes there, it dies. */
  dieAt(death: Death | undefined): void;
  /** Whether it died and was not started again. */
  isDead(): boolean;
  /** Dispatches and delivers what is due, or until it dies. */
  poll(): Promise<DrainResult | undefined>;
  /** Leaves the process and starts another one on the database, in the middle of whatever it was. */
  restart(): Promise<void>;
  /** How the receiver answers from now on: how often it fails, and how. Absent: it does not. */
  misbehave(dice: Dice | undefined): void;
  close(): Promise<void>;
}

interface LifeSpan {
  isDead: boolean;
  readonly end: () => void;
  readonly ended: Promise<undefined>;
}

function newLife(): LifeSpan {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return { isDead: false, end: () => resolve(undefined), ended: promise };
}

function ignoreDeath(span: LifeSpan) {
  return (error: unknown): undefined => {
    if (!span.isDead) throw error;
  };
}

class Died extends Error {
  constructor() {
    super("this process has died");
  }
}

export async function openStage(dialect: TestDialect): Promise<Stage> {
  const world = await openBookingWorld(dialect, { testClock: testClock("2031-01-06T06:00:00.000Z") });
  let trouble: Dice | undefined;
  let hangs = 0;
  const respond = (_: ReceivedRequest) => {
    if (trouble === undefined || !trouble.chance(0.3)) return 200;
    // A receiver that hangs costs real time, so it rarely does.
    if (hangs > 0 && trouble.chance(0.1)) {
      hangs--;
      return "hang";
    }
    return trouble.pick([500, 503, "reset"] as const);
  };
  const receiver = await startReceiver({ respond });

  const creator = await world.user({ is_admin: true });
  const hosts = [await world.host(), await world.host(), await world.host()];
  const team = await world.eventType(
    [
      { user: hosts[0]!, role: "rotation" },
      { user: hosts[1]!, role: "rotation" },
      { user: hosts[2]!, role: "required" },
    ],
    { routing_mode: "round_robin" },
  );
  const solo = await world.eventType([hosts[0]!], { routing_mode: "fixed" });
  const ordinary = await world.eventType(hosts, { routing_mode: "priority" });
  for (const [index, owner] of [creator, ...hosts].entries())
    ok(
      await owner.post("/v1/webhooks", {
        url: `http://127.0.0.1:${receiver.port}/${index}`,
        events: ["booking.*", "scheduling_invitation.*"],
      }),
      201,
    );

  let planned: Death | undefined;
  let died = 0;
  let present = newLife();
  const start = (): Promise<Life> => {
    // Of this process alone: what a dead one still tries fails although the next one lives.
    const self = newLife();
    present = self;
    const live = (): void => {
      if (self.isDead) throw new Died();
    };
    const comeTo = (death: Death): void => {
      live();
      if (planned !== death) return;
      planned = undefined;
      self.isDead = true;
      self.end();
      died++;
      throw new Died();
    };
    return openLife({
      location: world.location,
      directory: world.directory,
      key: world.key,
      ...(world.encryptionKeys === undefined ? {} : { encryptionKeys: world.encryptionKeys }),
      now: world.clock.now,
      captureOrdinary: true,
      exchangeMs: 250,
      onKick: () => comeTo("after the commit"),
      hooks(real) {
        const emit = async (...args: Parameters<AppHooks["emitUnknown"]>) => {
          const emitted = await real.emitUnknown(...args);
          comeTo("before the commit");
          return emitted;
        };
        // The typed one of invitations differs from the other in its types only.
        return instead(real, { emitUnknown: emit, emit: emit as unknown as AppHooks["emit"] });
      },
      store: (real) =>
        instead(real, {
          async dispatch(...args) {
            comeTo("before the dispatch");
            const dispatched = await real.dispatch(...args);
            comeTo("after the dispatch");
            return dispatched;
          },
          async takeNew(...args) {
            live();
            return await real.takeNew(...args);
          },
          async claim(...args) {
            live();
            return await real.claim(...args);
          },
          async record(...args) {
            live();
            return await real.record(...args);
          },
          async failDispatch(...args) {
            live();
            return await real.failDispatch(...args);
          },
        }),
      sender: (real) => ({
        async deliver(...args) {
          comeTo("before a send");
          try {
            return await real.deliver(...args);
          } finally {
            comeTo("after a send");
          }
        },
      }),
    });
  };
  let life = await start();

  return {
    world,
    creator,
    hosts,
    teamTypeId: team.id,
    soloTypeId: solo.id,
    ordinarySlug: ordinary.slug,
    receiver,
    get deaths() {
      return died;
    },
    get life() {
      return life;
    },
    client: (key) => clientOf(life.url, key),
    dieAt(death) {
      planned = death;
    },
    isDead: () => present.isDead,
    async poll() {
      const { hooks } = life;
      const drained = hooks.drain({ deadlineMs: 2_000 });
      // Nobody waits for what a dead process would still do.
      return await Promise.race([drained.catch(ignoreDeath(present)), present.ended]);
    },
    async restart() {
      // What it still had in its hands is lost: from here on it reaches neither dispatch nor record.
      present.isDead = true;
      await life.close();
      planned = undefined;
      life = await start();
    },
    misbehave(by) {
      trouble = by;
      hangs = by?.chance(0.2) ? 1 : 0;
    },
    async close() {
      await life.close();
      await receiver.close();
      await world[Symbol.asyncDispose]();
    },
  };
}
