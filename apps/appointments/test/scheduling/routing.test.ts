import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assignHosts, type HostCandidate } from "../../src/scheduling/routing.ts";

const host = (
  userId: string,
  role: HostCandidate["role"],
  isFree = true,
  upcomingBookings = 0,
): HostCandidate => ({ userId, role, isFree, upcomingBookings });

describe("routing", () => {
  test.each([
    ["fixed takes the first", "fixed", [host("a", "required"), host("b", "required")], ["a"]],
    ["fixed never takes another", "fixed", [host("a", "required", false), host("b", "required")], undefined],
    ["collective takes all", "collective", [host("a", "rotation"), host("b", "required")], ["a", "b"]],
    ["collective needs all", "collective", [host("a", "required"), host("b", "required", false)], undefined],
    [
      "priority takes the first free",
      "priority",
      [host("a", "required", false), host("b", "rotation")],
      ["b"],
    ],
    ["priority without anybody free", "priority", [host("a", "required", false)], undefined],
    [
      "round robin takes who has the fewest, as primary, and every required host",
      "round_robin",
      [host("r", "required"), host("a", "rotation", true, 3), host("b", "rotation", true, 2)],
      ["b", "r"],
    ],
    [
      "round robin decides ties by order",
      "round_robin",
      [host("a", "rotation", true, 2), host("b", "rotation", true, 2)],
      ["a"],
    ],
    [
      "round robin passes over who is busy",
      "round_robin",
      [host("a", "rotation", false, 0), host("b", "rotation", true, 9)],
      ["b"],
    ],
    [
      "round robin needs every required host",
      "round_robin",
      [host("r", "required", false), host("a", "rotation")],
      undefined,
    ],
    [
      "round robin needs a free rotation host",
      "round_robin",
      [host("r", "required"), host("a", "rotation", false)],
      undefined,
    ],
    ["round robin of one required host is that host", "round_robin", [host("r", "required")], ["r"]],
    [
      "optional hosts join if they are free",
      "fixed",
      [host("o", "optional"), host("a", "required"), host("p", "optional", false)],
      ["a", "o"],
    ],
    ["optional hosts alone hold nothing", "priority", [host("o", "optional")], undefined],
    ["nobody holds nothing", "collective", [], undefined],
  ] as const)("%s", (_, mode, candidates, expected) => {
    expect(assignHosts(mode, candidates)).toEqual(expected);
  });

  const candidates = fc
    .array(
      fc.record({
        role: fc.constantFrom("required", "rotation", "optional" as const),
        isFree: fc.boolean(),
        upcomingBookings: fc.integer({ min: 0, max: 3 }),
      }),
      { maxLength: 6 },
    )
    .map((list) => list.map((each, index) => ({ ...each, userId: `u${index}` })) as HostCandidate[]);
  const modes = fc.constantFrom("fixed", "collective", "priority", "round_robin" as const);

  test("whoever is assigned is free, assigned once, and the primary is not optional", () => {
    fc.assert(
      fc.property(modes, candidates, (mode, list) => {
        const assigned = assignHosts(mode, list);
        if (assigned === undefined) return;
        const byId = new Map(list.map((each) => [each.userId, each]));
        expect(new Set(assigned).size).toBe(assigned.length);
        expect(assigned.every((id) => byId.get(id)?.isFree)).toBe(true);
        expect(byId.get(assigned[0] ?? "")?.role).not.toBe("optional");
        const joined = list.filter((each) => each.role === "optional" && each.isFree);
        expect(joined.every((each) => assigned.includes(each.userId))).toBe(true);
      }),
    );
  });

  test("one required host is never replaced, in any mode", () => {
    fc.assert(
      fc.property(modes, fc.boolean(), candidates, (mode, isFree, list) => {
        const optional = list.filter((each) => each.role === "optional");
        const assigned = assignHosts(mode, [host("named", "required", isFree), ...optional]);
        expect(assigned?.[0]).toBe(isFree ? "named" : undefined);
      }),
    );
  });

  test("somebody more who is free never makes an appointment impossible, but for collective", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("fixed", "priority", "round_robin" as const),
        candidates.filter((list) => list.some((each) => each.role === "rotation")),
        (mode, list) => {
          const more = [...list, host("new", "rotation")];
          if (assignHosts(mode, list) !== undefined) expect(assignHosts(mode, more)).toBeDefined();
        },
      ),
    );
  });
});
