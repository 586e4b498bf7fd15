import type { DeliveryRecord, EventRecord } from "hookwell";
import { type Receiver, type ReceiverOptions, startReceiver } from "hookwell/testing";
import { type Answered, type Client, clientOf } from "../../support/client.ts";
import {
  openWorld,
  type TestDialect,
  type UserClient,
  type World,
  type WorldOptions,
} from "../../support/world.ts";

/** A Monday morning in UTC; the first working day of every host that a test makes. */
const startOfTime = "2031-03-03T08:00:00.000Z";

/** Virtual time, of the application and of Hookwell. */
export interface TestClock {
  readonly now: () => Date;
  advance(ms: number): void;
}

export function testClock(start = startOfTime): TestClock {
  let at = Date.parse(start);
  return {
    now: () => new Date(at),
    advance(ms) {
      at += ms;
    },
  };
}

export interface Hook extends Receiver {
  readonly id: string;
  readonly secret: string;
  /** Bodies that arrived, parsed, in order. */
  bodies(): Body[];
}

/** A webhook as it arrives. */
export interface Body {
  readonly id: string;
  readonly event: string;
  readonly created_at: string;
  readonly data: Readonly<Record<string, unknown>> & {
    readonly booking_id: string;
    readonly revision: number;
  };
}

export interface Invited {
  readonly id: string;
  readonly token: string;
}

export interface BookedBooking {
  readonly id: string;
  readonly start_at: string;
  readonly end_at: string;
  readonly manage: string;
}

/** The application with what the bookings half needs, on virtual time; `poll` is one look of dispatcher and worker. */
export interface BookingWorld extends World {
  readonly clock: TestClock;
  /** A user who works from 9 to 17 on every day of the week, in UTC unless said. */
  host(fields?: Record<string, unknown>): Promise<UserClient>;
  /** An event type of the first host. The hosts are `required` unless a role is given. */
  eventType(
    hosts: readonly (UserClient | { readonly user: UserClient; readonly role: string })[],
    fields?: Record<string, unknown>,
  ): Promise<Answered["body"]>;
  invite(creator: Client, eventTypeId: string, fields?: Record<string, unknown>): Promise<Invited>;
  /** Tries to use an invitation. */
  tryBook(token: string, startAt: string, fields?: Record<string, unknown>): Promise<Answered>;
  /** Uses an invitation. @throws Error when that is refused */
  book(invited: Invited, startAt: string, fields?: Record<string, unknown>): Promise<BookedBooking>;
  /** The customer's requests: no key. */
  readonly customer: Client;
  /** A webhook of the user's own that a receiver of its own listens at. */
  hook(owner: Client, fields?: Record<string, unknown>, respond?: ReceiverOptions["respond"]): Promise<Hook>;
  bookingRow(id: string): Promise<Record<string, unknown> | undefined>;
  /** Events of one booking, in capture order. */
  bookingEvents(id: string): Promise<EventRecord[]>;
  invitationEvents(id: string): Promise<EventRecord[]>;
  /** Dispatches what is new and sends what is due, until nothing is. */
  poll(): Promise<void>;
  deliveriesOf(eventId: string): Promise<readonly DeliveryRecord[]>;
  /** The name of one of Hookwell's own tables in SQL. */
  table(name: string): string;
}

export async function openBookingWorld(
  dialect: TestDialect,
  options: WorldOptions & { readonly testClock?: TestClock } = {},
): Promise<BookingWorld> {
  const clock = options.testClock ?? testClock();
  const world = await openWorld(dialect, { clock: clock.now, ...options });
  const customer = clientOf(world.url, undefined);
  const receivers: Receiver[] = [];
  let made = 0;

  const extra = {
    clock,
    customer,
    async host(fields: Record<string, unknown> = {}) {
      const user = await world.user(fields);
      const rules = Array.from({ length: 7 }, (_, day) => ({
        day_of_week: day,
        start_time: "09:00",
        end_time: "17:00",
      }));
      ok(await world.admin.put(`/v1/users/${user.id}/availability`, { rules, overrides: [] }), 200);
      return user;
    },
    async eventType(
      hosts: readonly (UserClient | { readonly user: UserClient; readonly role: string })[],
      fields: Record<string, unknown> = {},
    ) {
      const named = hosts.map((host) => ("user" in host ? host : { user: host, role: "required" }));
      const created = await named[0]!.user.post("/v1/event-types", {
        slug: `kind-${++made}`,
        name: `Kind ${made}`,
        duration_minutes: 30,
        max_active_bookings: 0,
        location_type: "meeting",
        hosts: named.map(({ user, role }, priority) => ({ user_id: user.id, role, priority })),
        ...fields,
      });
      return ok(created, 201).body;
    },
    async invite(creator: Client, eventTypeId: string, fields: Record<string, unknown> = {}) {
      const { body } = ok(
        await creator.post("/v1/scheduling-invitations", {
          event_type_id: eventTypeId,
          recipient: { name: "Grace Hopper", email: `grace${++made}@example.com` },
          expires_at: "2031-12-31T00:00:00Z",
          ...fields,
        }),
        201,
      );
      return { id: body.id, token: body.token };
    },
    tryBook: (token: string, startAt: string, fields: Record<string, unknown> = {}) =>
      customer.post(`/v1/schedule/${token}/book`, {
        start_at: startAt,
        timezone: "America/New_York",
        answers: [],
        ...fields,
      }),
    async book(invited: Invited, startAt: string, fields: Record<string, unknown> = {}) {
      const { body } = ok(await extra.tryBook(invited.token, startAt, fields), 201);
      return {
        id: body.id,
        start_at: body.start_at,
        end_at: body.end_at,
        manage: `/manage/${body.manage_token}`,
      };
    },
    async hook(owner: Client, fields: Record<string, unknown> = {}, respond?: ReceiverOptions["respond"]) {
      const receiver = await startReceiver(respond ? { respond } : {});
      receivers.push(receiver);
      const { body } = ok(
        await owner.post("/v1/webhooks", { url: receiver.url, events: ["booking.*"], ...fields }),
        201,
      );
      const bodies = (): Body[] =>
        receiver.requests.map((request) => JSON.parse(request.body.toString("utf8")) as Body);
      return Object.assign(receiver, { id: body.id, secret: body.secret, bodies });
    },
    bookingRow: (id: string) =>
      world.db.selectFrom("bookings").selectAll().where("id", "=", id).executeTakeFirst(),
    bookingEvents: (id: string) => eventsAbout(`booking:${id}`),
    invitationEvents: (id: string) => eventsAbout(`scheduling_invitation:${id}`),
    async poll() {
      await world.hooks.drain({ deadlineMs: 30_000 });
    },
    async deliveriesOf(eventId: string) {
      return (await world.hooks.deliveries.list({ projectId: "live", eventId }, { limit: 100 })).items;
    },
    table: (name: string) => (dialect === "sqlite" ? `hookwell_${name}` : `hookwell.${name}`),
    async [Symbol.asyncDispose]() {
      for (const receiver of receivers) await receiver.close();
      await world[Symbol.asyncDispose]();
    },
  };
  async function eventsAbout(subject: string): Promise<EventRecord[]> {
    const { items } = await world.hooks.events.list({ projectId: "live", subject }, { limit: 100 });
    return [...items].reverse();
  }
  return { ...world, ...extra };
}

/** The answer, if it has this status. @throws Error that shows it */
export function ok(answer: Answered, status: number): Answered {
  if (answer.status !== status)
    throw new Error(`Wanted ${status}, got ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer;
}

/** What an event says, as it was captured. */
export function dataOf(event: EventRecord): Record<string, unknown> {
  return JSON.parse(event.data);
}
