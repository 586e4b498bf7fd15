import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { EventRecord } from "hookwell";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileCache } from "../../../../packages/hookwell/test/support/compile-cache.ts";
import {
  type BookedBooking,
  type BookingWorld,
  type Hook,
  type Invited,
  openBookingWorld,
} from "../bookings/support/booking-world.ts";
import type { TestDialect, UserClient } from "../support/world.ts";
import type { CrashOrder, CrashPoint, CrashRequest } from "./order.ts";

const child = fileURLToPath(new URL("child.ts", import.meta.url));
const at = (time: string): string => `2031-03-10T${time}:00Z`;
const hour = 3_600_000;

/** Runs one life. It is killed with SIGKILL where it reports its point, or ends by itself. Answers what it said. */
function live(order: CrashOrder): Promise<string> {
  const started = spawn(process.execPath, ["--conditions=@hookwell/source", "--no-warnings", child], {
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache, CRASH_ORDER: JSON.stringify(order) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  started.stderr.on("data", (part) => {
    errors += part;
  });
  started.stdout.on("data", (part) => {
    output += part;
    if (output.includes(`POINT ${order.point}\n`)) started.kill("SIGKILL");
  });
  return new Promise((resolve, reject) => {
    started.once("close", (code, signal) => {
      if (order.point === "end" ? code === 0 : signal === "SIGKILL") resolve(output);
      else
        reject(
          new Error(`the life until ${order.point} ended with ${code ?? signal}:\n${output}\n${errors}`),
        );
    });
  });
}

interface Scene {
  readonly host: UserClient;
  readonly hook: Hook;
  readonly invited: Invited;
}

const transitions = ["created", "rescheduled", "cancelled"] as const;
type TransitionName = (typeof transitions)[number];

/** Checks 26 to 32, on one database. */
export function crashSuite(dialect: TestDialect): void {
  describe(`the application killed with SIGKILL on ${dialect}`, { timeout: 180_000 }, () => {
    let world: BookingWorld;
    beforeAll(async () => {
      world = await openBookingWorld(dialect);
    });
    afterAll(() => world[Symbol.asyncDispose]());

    const place = () => ({
      location: world.location,
      directory: world.directory,
      key: world.key,
      ...(world.encryptionKeys === undefined ? {} : { encryptionKeys: world.encryptionKeys }),
    });
    const run = (point: CrashOrder["point"], request?: CrashRequest): Promise<string> =>
      live({
        place: place(),
        point,
        now: world.clock.now().toISOString(),
        ...(request === undefined ? {} : { request }),
      });
    /** The next life begins later: what the one before had claimed is free, what failed is due. */
    const restart = async (): Promise<void> => {
      world.clock.advance(hour);
      await run("end");
    };

    async function scene(): Promise<Scene> {
      const host = await world.host();
      const { id: eventTypeId } = await world.eventType([host]);
      return { host, hook: await world.hook(host), invited: await world.invite(host, eventTypeId) };
    }

    /** A booking whose event is captured and not dispatched. */
    async function captured(): Promise<Scene & { booking: BookedBooking; event: EventRecord }> {
      const made = await scene();
      const booking = await world.book(made.invited, at("10:00"));
      const [event] = await world.bookingEvents(booking.id);
      return { ...made, booking, event: event! };
    }

    /** What makes the transition, with all that must be there before it. */
    async function prepare(
      name: TransitionName,
    ): Promise<Scene & { request: CrashRequest; bookingId?: string }> {
      const made = await scene();
      if (name === "created") {
        const body = { start_at: at("10:00"), timezone: "Asia/Kolkata", answers: [] };
        const request = { method: "POST", path: `/v1/schedule/${made.invited.token}/book`, body };
        return { ...made, request };
      }
      const booking = await world.book(made.invited, at("10:00"));
      await world.poll();
      const request =
        name === "rescheduled"
          ? { method: "POST", path: `${booking.manage}/reschedule`, body: { start_at: at("12:00") } }
          : { method: "POST", path: `/v1/bookings/${booking.id}/cancel`, key: made.host.key };
      return { ...made, request, bookingId: booking.id };
    }

    const bookingsOf = (invited: Invited) =>
      world.db
        .selectFrom("bookings")
        .selectAll()
        .where("scheduling_invitation_id", "=", invited.id)
        .execute();
    const stepsOf = (bookingId: string) =>
      world.db.selectFrom("side_effects").selectAll().where("booking_id", "=", bookingId).execute();

    const revisions = { created: 1, rescheduled: 2, cancelled: 2 } as const;

    test.each(transitions)(
      "bookings 26: killed after the commit of booking.%s and before its answer, the event is delivered and nothing is done again",
      async (name) => {
        const { request, hook, invited } = await prepare(name);
        const sent = hook.requests.length;
        expect(await run("commit-answer", request)).not.toContain("ANSWER");

        const committed = await bookingsOf(invited);
        expect(committed).toHaveLength(1);
        const [row] = committed;
        const events = await world.bookingEvents(row!.id);
        const last = events.at(-1)!;
        expect(last).toMatchObject({
          type: `booking.${name}`,
          revision: revisions[name],
          state: "new",
        });
        expect(events).toHaveLength(revisions[name]);
        const steps = await stepsOf(row!.id);
        expect(steps.filter(({ revision }) => revision === row!.revision).length).toBeGreaterThan(0);
        expect(hook.requests).toHaveLength(sent);

        await restart();
        expect(hook.requests).toHaveLength(sent + 1);
        const body = hook.bodies().at(-1)!;
        expect(body).toMatchObject({ id: last.id, event: `booking.${name}` });
        expect(body.data).toMatchObject({
          booking_id: row!.id,
          revision: row!.revision,
          status: row!.status,
        });
        expect(await bookingsOf(invited)).toEqual(committed);
        expect((await world.bookingEvents(row!.id)).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
      },
    );

    test.each(transitions)(
      "bookings 27: killed before the commit of booking.%s, there is neither change nor event, and the client's retry works",
      async (name) => {
        const { request, hook, invited, bookingId } = await prepare(name);
        const before = await bookingsOf(invited);
        const sent = hook.requests.length;
        const lifecycle = await world.invitationEvents(invited.id);
        expect(await run("capture-commit", request)).not.toContain("ANSWER");

        expect(await bookingsOf(invited)).toEqual(before);
        if (bookingId !== undefined) expect(await world.bookingEvents(bookingId)).toHaveLength(1);
        const now = await world.invitationEvents(invited.id);
        expect(now.map(({ id }) => id)).toEqual(lifecycle.map(({ id }) => id));

        // The application is started again, and the client asks it once more.
        world.clock.advance(hour);
        expect(await run("end", request)).toContain(name === "created" ? "ANSWER 201" : "ANSWER 200");
        const [row, ...others] = await bookingsOf(invited);
        expect(others).toEqual([]);
        expect(row!.revision).toBe(revisions[name]);
        expect(await world.bookingEvents(row!.id)).toHaveLength(revisions[name]);
        await world.poll();
        expect(hook.bodies().slice(sent)).toMatchObject([{ event: `booking.${name}` }]);
      },
    );

    test("bookings 28: killed in the drain before its commit, nothing is queued; the next poll queues each delivery once", async () => {
      const { host, hook, event } = await captured();
      const second = await world.hook(host);
      await run("dispatch-commit");
      expect(await world.deliveriesOf(event.id)).toEqual([]);
      expect((await world.bookingEvents(bookingOf(event)))[0]).toMatchObject({ state: "new" });
      expect([hook.requests.length, second.requests.length]).toEqual([0, 0]);

      await restart();
      const deliveries = await world.deliveriesOf(event.id);
      expect(deliveries.map(({ subscriptionId }) => subscriptionId).sort()).toEqual(
        [hook.id, second.id].sort(),
      );
      await world.poll();
      expect(await world.deliveriesOf(event.id)).toHaveLength(2);
      expect([hook.requests.length, second.requests.length]).toEqual([1, 1]);
    });

    test("bookings 29: killed after the drain's commit and before the claim, the same deliveries are sent", async () => {
      const { hook, event } = await captured();
      await run("dispatch-claim");
      const queued = await world.deliveriesOf(event.id);
      expect(queued).toMatchObject([{ status: "pending", attempts: 0 }]);
      expect(hook.requests).toEqual([]);

      await restart();
      expect(hook.requests.map(({ headers }) => headers["x-hookwell-delivery"])).toEqual([queued[0]!.id]);
      expect(await world.deliveriesOf(event.id)).toMatchObject([
        { id: queued[0]!.id, status: "delivered", attempts: 1 },
      ]);
    });

    test("bookings 30: killed after the claim and before the POST, nothing is sent until the lease ends; one attempt is spent", async () => {
      const { hook, event } = await captured();
      await run("claim-send");
      world.clock.advance(29_000);
      await world.poll();
      expect(hook.requests).toEqual([]);
      expect(await world.deliveriesOf(event.id)).toMatchObject([{ status: "pending" }]);

      world.clock.advance(1_000);
      await run("end");
      expect(hook.requests).toHaveLength(1);
      expect(await world.deliveriesOf(event.id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
    });

    test("bookings 31: killed after the receiver's 2xx and before recording it, the second POST is equal", async () => {
      const { hook, event } = await captured();
      await run("send-record");
      expect(hook.requests).toHaveLength(1);
      await restart();
      const [first, second, ...more] = hook.requests;
      expect(more).toEqual([]);
      expect(second!.body.equals(first!.body)).toBe(true);
      for (const header of ["webhook-id", "x-hookwell-delivery", "x-hookwell-signature"]) {
        expect(first!.headers[header]).toBeTruthy();
        expect(second!.headers[header]).toBe(first!.headers[header]);
      }
      expect(second!.headers["webhook-id"]).toBe(event.id);
      expect(await world.deliveriesOf(event.id)).toMatchObject([{ status: "delivered" }]);
    });

    test.each([
      ["send-record", "send-record", "send-record"],
      ["claim-send", "send-record", "claim-send"],
    ] as const)(
      "bookings 32: killed at %s, %s and %s, there are at most three POSTs, then the delivery has failed",
      async (...points: CrashPoint[]) => {
        const { hook, event } = await captured();
        for (const point of points) {
          await run(point);
          world.clock.advance(hour);
        }
        const posts = points.filter((point) => point === "send-record").length;
        expect(hook.requests).toHaveLength(posts);
        await run("end");
        world.clock.advance(2 * hour);
        await world.poll();
        expect(hook.requests).toHaveLength(posts);
        expect(new Set(hook.requests.map(({ body }) => body.toString())).size).toBe(1);
        expect(await world.deliveriesOf(event.id)).toMatchObject([{ status: "failed", attempts: 3 }]);
        expect((await world.bookingEvents(bookingOf(event)))[0]).toMatchObject({ state: "dispatched" });
      },
    );
  });
}

function bookingOf(event: EventRecord): string {
  return (JSON.parse(event.data) as { booking_id: string }).booking_id;
}
