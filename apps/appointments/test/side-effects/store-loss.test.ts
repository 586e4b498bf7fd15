import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sideEffects } from "../../src/side-effects/index.ts";
import { systemTimers } from "../../src/side-effects/step-loop.ts";
import { dialects, type UserClient } from "../support/world.ts";
import { type EffectWorld, eventually, openEffectWorld } from "./support/effect-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: EffectWorld;
  let host: UserClient;
  let eventTypeId: string;
  beforeAll(async () => {
    world = await openEffectWorld(dialect, { without: "calendar" });
    host = await world.host();
    ({ id: eventTypeId } = await world.eventType([host]));
  });
  afterAll(() => world[Symbol.asyncDispose]());
  const lose = () => world.sql("ALTER TABLE side_effects RENAME TO side_effects_away");
  const regain = () => world.sql("ALTER TABLE side_effects_away RENAME TO side_effects");
  const book = async (hour: number, email: string) =>
    await world.book(
      await world.invite(host, eventTypeId, { recipient: { name: "Grace", email } }),
      `2031-03-20T${hour}:00:00Z`,
    );

  test("bookings 65: a mail that was sent while the database is away is recorded when it is back, not sent again", async () => {
    await book(10, "grace@example.com");
    let away: Promise<void> | undefined;
    world.mail.refuse = async () => {
      // From here on the mail is on its way, and nothing can be written of it.
      away ??= lose();
      await away;
      return undefined;
    };
    let tries = 0;
    let back: Promise<void> | undefined;
    const runner = sideEffects({
      ...world.deps,
      timers: {
        async sleep() {
          tries += 1;
          if (tries < 3) return;
          // Each step that waits sees it back, however long that takes.
          back ??= regain();
          await back;
        },
      },
    });
    await runner.runOnce().catch(() => 0);
    await runner.stop();
    world.mail.refuse = undefined;
    await world.effects.runOnce();
    world.clock.advance(120_000);
    await world.effects.runOnce();
    expect(tries).toBeGreaterThanOrEqual(3);
    expect(world.mail.to("grace@example.com")).toHaveLength(1);
  });

  test("bookings 65: the background says once that it lost the database, and goes on when it is back", async () => {
    const background = sideEffects({ ...world.deps, timers: systemTimers });
    await lose();
    background.start();
    const said = (text: string) => world.log.filter((line) => line.includes(text)).length;
    await eventually(() => said("(mail, reminder) cannot be read")).toBe(1);
    background.kick();
    background.kick();
    await regain();
    await book(11, "hopper@example.com");
    background.kick();
    await eventually(() => world.mail.to("hopper@example.com").length).toBe(1);
    await background.stop();
    expect(said("(mail, reminder) cannot be read")).toBe(1);
    expect(said("(mail, reminder) go on")).toBe(1);
  });
});
