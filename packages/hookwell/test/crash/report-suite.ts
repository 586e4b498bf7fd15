import { describe, expect, test } from "vitest";
import { type Options, parseOptions } from "./options.ts";
import { failed, lineOf, pageOf, type Result } from "./page.ts";
import { crashPoints } from "./points.ts";
import { type Sent, tally } from "./tally.ts";

const sent = (to: string, event: string, body = `{"id":"${event}"}`): Sent => ({ to, event, body });
const whole = { committed: ["1", "2"], strangers: [], endpoints: ["a", "b"] };
const all = [sent("a", "1"), sent("b", "1"), sent("a", "2"), sent("b", "2")];

/** What `npm run crash` says of what it saw. */
export function reportSuite(): void {
  describe("npm run crash", () => {
    test("counts what is lost, invented, changed and sent twice, and fails for the first three", () => {
      const of = (what: Partial<typeof whole> & { sent?: Sent[] }, asked = 0) => {
        const seen = tally({ ...whole, sent: all, ...what }, asked);
        return { ...seen, failed: failed(seen) };
      };
      const good = { committed: 2, lost: 0, invented: 0, changed: 0, duplicates: 0, failed: false };
      expect(of({})).toEqual(good);
      expect(of({ sent: all.slice(1) })).toEqual({ ...good, lost: 1, failed: true });
      expect(of({ sent: [...all, sent("a", "1")] })).toEqual({ ...good, duplicates: 1 });
      expect(of({ sent: [...all, sent("a", "1")] }, 1), "a replay asked for it").toEqual(good);
      const other = sent("a", "1", "{}");
      expect(of({ sent: [...all, other] })).toEqual({ ...good, duplicates: 1, changed: 1, failed: true });
      expect(of({ sent: [...all, sent("a", "3")] })).toMatchObject({ invented: 1, failed: true });
      expect(of({ strangers: ["4"] } as never)).toMatchObject({ invented: 1, failed: true });
    });

    test("runs all of it, or the steps, troubles and stores that are named, and refuses what it does not know", () => {
      const wanted = (...args: string[]) => {
        const { points, troubles, dialects, whole } = parseOptions(args) as Options;
        return [points.length, troubles.length, dialects.length, whole];
      };
      expect(wanted()).toEqual([crashPoints.length, 5, 2, true]);
      expect(wanted("--rounds", "3")).toEqual([crashPoints.length, 5, 2, true]);
      expect(wanted("--only", "load")).toEqual([0, 5, 2, false]);
      expect(wanted("--only", "send, LISTEN lost")).toEqual([2, 1, 2, false]);
      expect(wanted("--dialect", "sqlite")).toEqual([crashPoints.length, 0, 1, false]);
      expect(parseOptions(["--help"])).toBeUndefined();
      expect(() => parseOptions(["--only", "sned"])).toThrow(/"sned"/);
      expect(() => parseOptions(["--rounds", "0"])).toThrow(/--rounds .* not "0"/);
      expect(() => parseOptions(["--dialect", "oracle"])).toThrow(/"oracle"/);
      expect(() => parseOptions(["--dialect", "sqlite", "--only", "restart"])).toThrow(/PostgreSQL/);
    });

    test("the page has a row for each point and trouble, and the sums", () => {
      const counts = { rolledBack: 40, committed: 600, lost: 0, invented: 0, changed: 0, duplicates: 7 };
      const results: Result[] = [
        { rounds: 20, ...counts, where: "SQLite", what: { point: crashPoints[0]! } },
        {
          ...counts,
          rounds: 8,
          where: "PostgreSQL",
          what: { trouble: "restart" },
          stallMs: 30_260,
          silentMs: 940,
        },
      ];
      const page = pageOf(results, "Node 24");
      expect(page).toContain(
        "28 rounds, 1,200 committed events: 0 lost, 0 from the 80 transactions that were rolled\nback",
      );
      expect(page).toContain(
        "| SQLite | capture, before | change and event written, not committed |     20 |       600 |    0 |",
      );
      expect(page).toContain("|        30.3 s |           0.9 s |");
      expect(lineOf(results[1]!)).toContain("7 duplicates, longest stall 30.3 s, longest silence 0.9 s");
    });
  });
}
