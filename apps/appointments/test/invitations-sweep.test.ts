import { afterEach, expect, test, vi } from "vitest";
import { startExpirySweep } from "../src/invitations/expiry.ts";
import { openBookingWorld } from "./bookings/support/booking-world.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("bookings 24: the sweep comes at least once a minute, survives what fails, and ends when it is stopped", async () => {
  await using world = await openBookingWorld("sqlite");
  const owner = await world.host();
  const type = await world.eventType([owner]);
  const invited = await world.invite(owner, type.id, { expires_at: "2031-03-03T08:00:30Z" });
  // Only the timers that the loop itself uses: databases and sockets keep theirs.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });

  const log: string[] = [];
  let isAway = true;
  let rounds = 0;
  const now = () => {
    rounds++;
    if (isAway) throw new Error("the clock is away");
    return world.clock.now();
  };
  const sweep = startExpirySweep({
    db: world.db,
    dialect: "sqlite",
    hooks: world.hooks,
    now,
    logger: { error: (line) => log.push(line) },
  });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(rounds).toBeGreaterThanOrEqual(2);
  expect(log.every((line) => line.includes("the clock is away"))).toBe(true);
  expect(await world.invitationEvents(invited.id)).toHaveLength(1);

  isAway = false;
  world.clock.advance(60_000);
  await vi.advanceTimersByTimeAsync(60_000);
  await sweep.stop();
  expect((await world.invitationEvents(invited.id)).map((event) => event.type)).toEqual([
    "scheduling_invitation.created",
    "scheduling_invitation.expired",
  ]);
  const before = rounds;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(rounds).toBe(before);
  vi.useRealTimers();
});
