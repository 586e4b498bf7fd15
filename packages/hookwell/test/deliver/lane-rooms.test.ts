import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LaneRooms, type LaneSignal } from "../../src/deliver/lane-rooms.ts";

/** Sends `count` on a lane, ends them all with the signal, and answers the lane's room. */
function after(rooms: LaneRooms, id: string, signals: readonly LaneSignal[]): number {
  for (const signal of signals) {
    rooms.began(id);
    rooms.ended(id, signal);
  }
  return rooms.rooms().get(id) ?? rooms.unknown;
}

describe("the bound of a lane", () => {
  test("is 1 at first, 4 after a success, then doubled up to 32, halved by a time-out down to 1", () => {
    const rooms = new LaneRooms();
    expect(after(rooms, "a", [])).toBe(1);
    expect(after(rooms, "a", ["other"])).toBe(1);
    expect(after(rooms, "a", ["success"])).toBe(4);
    expect(after(rooms, "a", ["success", "success"])).toBe(16);
    expect(after(rooms, "a", ["success", "success"])).toBe(32);
    expect(after(rooms, "a", ["other"])).toBe(32);
    expect(after(rooms, "a", ["timeout"])).toBe(16);
    expect(after(rooms, "a", Array(9).fill("timeout"))).toBe(1);
    expect(after(rooms, "a", ["success"])).toBe(4);
    expect(after(rooms, "b", [])).toBe(1);
  });

  test("is never exceeded, and never forgotten while sends are under way", () => {
    const step = fc.record({
      lane: fc.constantFrom("a", "b", "c"),
      wants: fc.integer({ min: 0, max: 40 }),
      ends: fc.integer({ min: 0, max: 40 }),
      signal: fc.constantFrom<LaneSignal>("success", "timeout", "other"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const rooms = new LaneRooms();
        const inFlight = new Map<string, number>();
        for (const { lane, wants, ends, signal } of steps) {
          const given = rooms.rooms();
          const room = given.get(lane) ?? rooms.unknown;
          const taken = Math.min(wants, room);
          for (let send = 0; send < taken; send++) rooms.began(lane);
          rooms.claimed(Array(taken).fill(lane), given, false);
          const now = (inFlight.get(lane) ?? 0) + taken;
          expect(now).toBeLessThanOrEqual(32);
          const ended = Math.min(ends, now);
          for (let send = 0; send < ended; send++) {
            const more = rooms.ended(lane, signal);
            if (room > 0) expect(more).toBe(taken === room);
          }
          inFlight.set(lane, now - ended);
        }
      }),
    );
  });

  test("an outcome that holds the lane leaves no room until it is recorded", () => {
    const rooms = new LaneRooms();
    after(rooms, "a", ["success"]);
    rooms.began("a");
    rooms.closing("a");
    rooms.ended("a", "other");
    expect(rooms.rooms().get("a")).toBe(0);
    rooms.closed("a");
    expect(rooms.rooms().get("a")).toBe(4);
  });

  test("few idle lanes are remembered: what travels with a claim stays small", () => {
    const rooms = new LaneRooms();
    for (let lane = 0; lane < 5_000; lane++) after(rooms, `lane ${lane}`, ["success"]);
    expect(rooms.rooms().size).toBeLessThanOrEqual(128);
  });

  test("promise 5, field-faults H6: a busy lane keeps its room however many others were answered before and meanwhile", () => {
    const rooms = new LaneRooms();
    for (let lane = 0; lane < 500; lane++) after(rooms, `before ${lane}`, ["success"]);
    // It has no send in flight between any two: that alone must not make it begin again.
    for (const room of [4, 8, 16, 32, 32]) {
      expect(after(rooms, "busy", ["success"])).toBe(room);
      for (let lane = 0; lane < 100; lane++) after(rooms, `meanwhile ${room} ${lane}`, ["success"]);
    }
    expect(rooms.rooms().size).toBeLessThanOrEqual(128);
  });
});
