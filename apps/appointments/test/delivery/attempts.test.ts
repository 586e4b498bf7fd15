import { createHmac } from "node:crypto";
import { HttpSender } from "hookwell";
import { answers } from "hookwell/testing";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { openBookingWorld, testClock } from "../bookings/support/booking-world.ts";
import { dialects, type TestDialect } from "../support/world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;
const second = 1_000;

async function booked(
  dialect: TestDialect,
  respond: Parameters<typeof answers>,
  options: Parameters<typeof openBookingWorld>[1] = {},
) {
  const world = await openBookingWorld(dialect, options);
  const host = await world.host();
  const { id: eventTypeId } = await world.eventType([host]);
  const hook = await world.hook(host, {}, answers(...respond));
  const tomorrow = new Date(world.clock.now().getTime() + 86_400 * second).toISOString().slice(0, 10);
  const invited = await world.invite(host, eventTypeId);
  const booking = await world.book(invited, `${tomorrow}T10:00:00Z`);
  const [event] = await world.bookingEvents(booking.id);
  const delivery = async () => (await world.deliveriesOf(event!.id))[0]!;
  const attempts = async () => world.hooks.store.listAttempts((await delivery()).id);
  return { world, host, hook, event: event!, delivery, attempts };
}

test.each(dialects)(
  "bookings 58: on %s 500, 500 and 200 are three equal POSTs at once, a minute and five minutes later",
  async (dialect) => {
    const { world, hook, event, delivery, attempts } = await booked(dialect, [500, 500, 200]);
    await using _ = world;
    await world.poll();
    expect(hook.requests).toHaveLength(1);
    for (const [wait, posts] of [
      [59 * second, 1],
      [1 * second, 2],
      [299 * second, 2],
      [1 * second, 3],
      [3_600 * second, 3],
    ] as const) {
      world.clock.advance(wait);
      await world.poll();
      expect(hook.requests).toHaveLength(posts);
    }
    for (const header of ["webhook-id", "x-hookwell-delivery", "x-hookwell-signature"])
      expect(new Set(hook.requests.map(({ headers }) => headers[header])).size).toBe(1);
    expect(new Set(hook.requests.map(({ body }) => body.toString())).size).toBe(1);
    expect(hook.requests[0]!.headers["webhook-id"]).toBe(event.id);
    expect(await delivery()).toMatchObject({ status: "delivered", attempts: 3 });
    expect((await attempts()).map(({ statusCode }) => statusCode)).toEqual([500, 500, 200]);
  },
);

test.each(dialects)(
  "bookings 59: on %s a receiver that always answers 500 gets three POSTs, and the failure is reported once",
  async (dialect) => {
    const { world, hook, event, delivery } = await booked(dialect, [500]);
    await using _ = world;
    for (const wait of [0, 60, 300, 3_600, 86_400]) {
      world.clock.advance(wait * second);
      await world.poll();
    }
    expect(hook.requests).toHaveLength(3);
    const { id, status } = await delivery();
    expect(status).toBe("failed");
    expect(world.log.filter((line) => line.includes(id) && /fail/i.test(line))).toHaveLength(1);
    expect((await world.hooks.events.get(event.id)).state).toBe("dispatched");
  },
);

test.each(dialects)(
  "bookings 60: on %s a refused connection and an answer that never comes are attempts without a status code",
  async (dialect) => {
    const clock = testClock();
    const sender = new HttpSender({
      clock: clock.now,
      network: { allow: ["127.0.0.0/8"], http: true },
      limits: { exchangeMs: 500 },
    });
    const { world, host, hook, delivery, attempts } = await booked(dialect, ["hang"], {
      sender,
      clock: clock.now,
    });
    await using _ = world;
    await world.poll();
    expect(hook.requests).toHaveLength(1);
    const log = await attempts();
    expect(log).toHaveLength(1);
    expect(log[0]!.statusCode ?? null).toBeNull();
    expect(await delivery()).toMatchObject({ status: "pending", attempts: 1 });

    const refused = await world.hook(host);
    await refused.close();
    const { id: eventTypeId } = await world.eventType([host]);
    const next = await world.book(await world.invite(host, eventTypeId), at("12:00"));
    await world.poll();
    const [made] = await world.bookingEvents(next.id);
    const row = (await world.deliveriesOf(made!.id)).find(
      ({ subscriptionId }) => subscriptionId === refused.id,
    )!;
    expect(row).toMatchObject({ status: "pending", attempts: 1 });
    const [only] = await world.hooks.store.listAttempts(row.id);
    expect(only!.statusCode ?? null).toBeNull();
    await sender.close();
  },
);

test.each(dialects)(
  "bookings 61: on %s the published library and a plain HMAC verify the request; one changed byte fails both",
  async (dialect) => {
    // The library looks at the machine's clock and allows five minutes; this application's is one minute ahead.
    const testTime = testClock(new Date(Date.now() + 60 * second).toISOString());
    const { world, hook } = await booked(dialect, [200], { testClock: testTime });
    await using _ = world;
    await world.poll();
    const [request] = hook.requests;
    const body = request!.body.toString("utf8");
    const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    const headers = Object.fromEntries(names.map((name) => [name, String(request!.headers[name])]));
    const changed = body.replace("confirmed", "confirmee");
    expect(changed).not.toBe(body);

    const published = new Webhook(hook.secret);
    expect(published.verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => published.verify(changed, headers)).toThrow();

    const key = Buffer.from(hook.secret.replace(/^whsec_/, ""), "base64");
    const plain = (text: string) => createHmac("sha256", key).update(text).digest("hex");
    expect(request!.headers["x-hookwell-signature"]).toContain(plain(body));
    expect(request!.headers["x-hookwell-signature"]).not.toContain(plain(changed));
  },
);
