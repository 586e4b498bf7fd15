import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  CommitFailedError,
  inTransaction,
  isInTransaction,
  refuseInTransaction,
} from "../../src/database/transaction-guard.ts";
import { dialects } from "../support/world.ts";
import { type BookingWorld, ok, openBookingWorld } from "./support/booking-world.ts";

const source = fileURLToPath(new URL("../../src", import.meta.url));

test("bookings 25: no file but the guard opens a transaction", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const openers = files.filter((file) =>
    /\.(start)?[tT]ransaction\(\)|\bbegin\b.*\bsql\b/.test(readFileSync(join(source, file), "utf8")),
  );
  expect(files.length).toBeGreaterThan(50);
  expect(openers).toEqual([join("database", "transaction-guard.ts")]);
});

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeEach(async () => {
    world = await openBookingWorld(dialect);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  test("bookings 25: what a transaction calls is refused however deep, and its work with it; afterwards it is not", async () => {
    const user = await world.user();
    const deep = async (): Promise<void> => {
      await new Promise(setImmediate);
      await Promise.all([1, 2].map(async () => refuseInTransaction("A mail")));
    };
    let later: Promise<void> | undefined;
    let release = (): void => {};
    const ended = new Promise<void>((resolve) => {
      release = resolve;
    });
    const work = inTransaction(world.db, async (trx) => {
      await trx.updateTable("users").set({ name: "Changed" }).where("id", "=", user.id).execute();
      // Begun inside, goes on after the end.
      later = ended.then(deep);
      expect(isInTransaction()).toBe(true);
      await deep();
    });
    await expect(work).rejects.toThrow("A mail was about to run while a transaction is open");
    expect(isInTransaction()).toBe(false);
    release();
    await later;
    await deep();
    expect((await user.get("/v1/users/me")).body.name).not.toBe("Changed");
  });

  test("bookings 25: a transaction inside another is refused instead of waiting for it", async () => {
    const nested = inTransaction(world.db, () => inTransaction(world.db, async () => "never"));
    await expect(nested).rejects.toThrow("Another transaction was about to run");
    expect(await inTransaction(world.db, async () => "after")).toBe("after");
  });

  test("bookings 25: a commit that fails is told apart from work that fails", async () => {
    const mend = await world.breakCommit();
    const emit = inTransaction(world.db, (trx) =>
      world.hooks.emit(
        "user.created",
        { id: "x", email: "x@example.com", name: "X", status: "active", email_verified: false },
        { tx: trx },
      ),
    );
    await expect(emit).rejects.toBeInstanceOf(CommitFailedError);
    await mend();
    const failing = inTransaction(world.db, async () => {
      throw new Error("the work");
    });
    await expect(failing).rejects.toThrow("the work");
  });

  test("bookings 25: no entry point speaks to anybody but the database while its transaction is open", async () => {
    const host = await world.host();
    const { id: eventTypeId, slug } = await world.eventType([host]);
    await world.hook(host);
    const databasePort = world.location.dialect === "postgres" ? Number(new URL(world.location.url).port) : 0;
    const inside: string[] = [];
    let requests = 0;
    const onRequest = (message: unknown): void => {
      requests++;
      const { request } = message as { readonly request: { readonly origin: unknown } };
      if (isInTransaction()) inside.push(`a request to ${request.origin}`);
    };
    const { connect } = Socket.prototype;
    let connections = 0;
    Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
      connections++;
      const isInside = isInTransaction();
      this.once("connect", () => {
        if (isInside && this.remotePort !== databasePort)
          inside.push(`a connection to ${this.remoteAddress}:${this.remotePort}`);
      });
      return Reflect.apply(connect, this, args);
    } as typeof connect;
    subscribe("undici:request:create", onRequest);
    try {
      const invited = await world.invite(host, eventTypeId);
      const booking = await world.book(invited, "2031-03-04T10:00:00Z");
      const move = { start_at: "2031-03-04T11:00:00Z" };
      ok(await world.customer.post(`${booking.manage}/reschedule`, move), 200);
      ok(
        await host.patch(`/v1/bookings/${booking.id}/reschedule`, { start_at: "2031-03-04T12:00:00Z" }),
        200,
      );
      ok(
        await host.put(`/v1/bookings/${booking.id}/location`, { location_value: "https://m.example.com" }),
        200,
      );
      ok(await world.admin.post(`/v1/bookings/${booking.id}/cancel`), 200);
      const ordinary = await host.post("/v1/bookings", {
        event_type_slug: slug,
        start_at: "2031-03-04T10:00:00Z",
        timezone: "UTC",
        name: "Ada",
        email: "ada@example.com",
      });
      ok(await host.post(`/v1/bookings/${ok(ordinary, 201).body.id}/cancel`), 200);
      await world.poll();
      ok(await world.admin.post(`/v1/users/${host.id}/archive`), 200);
    } finally {
      unsubscribe("undici:request:create", onRequest);
      Socket.prototype.connect = connect;
    }
    // Both were looked at: the requests of this test, and the connection of its webhook.
    expect(requests).toBeGreaterThanOrEqual(9);
    expect(connections).toBeGreaterThanOrEqual(1);
    expect(inside).toEqual([]);
  });
});
