import { type Spread, spread } from "../measuring.ts";
import type { Results } from "../run.ts";
import type { Round } from "../sections/throughput.ts";

/** A line of the table: a ratio, or a plain number with its unit, and the target of DESIGN section 11. */
export interface Ratio {
  readonly section: string;
  readonly what: string;
  readonly unit: "×" | "ms" | "MB" | "/s";
  readonly values: Spread;
  readonly target?: { readonly atLeast: number } | { readonly below: number };
}

/** What was measured once has no spread. */
const once = (value: number): Spread => ({ min: Number.NaN, median: value, max: Number.NaN });

const isOurs = (name: string): boolean => name.startsWith("Hookwell");
const bare = "bare undici loop";

export function ratiosOf(results: Results): Ratio[] {
  return [...throughput(results), ...capture(results), ...latencies(results), ...backlog(results)];
}

export function isReached({ target, values }: Ratio): boolean | undefined {
  if (!target) return undefined;
  return "atLeast" in target ? values.median >= target.atLeast : values.median < target.below;
}

function throughput({ throughput: list = [] }: Results): Ratio[] {
  const roundsOf = (name: string): readonly Round[] =>
    list.find(({ contestant }) => contestant === name)?.rounds ?? [];
  const ratios: Ratio[] = [];
  for (const { contestant: name } of list.filter(({ contestant }) => isOurs(contestant))) {
    const mine = roundsOf(name);
    for (const { contestant: other, rounds } of list) {
      if (isOurs(other)) continue;
      const compare = (value: (round: Round) => number): Spread =>
        spread(mine.map((round, index) => value(round) / value(rounds[index]!)));
      const target =
        other === bare
          ? { atLeast: 0.5 }
          : other === "graphile-worker" && name.includes("PostgreSQL")
            ? { atLeast: 2 }
            : undefined;
      ratios.push({
        section: "throughput",
        what: `deliveries a second, ${name} ÷ ${other}`,
        unit: "×",
        values: compare(({ perSecond }) => perSecond),
        ...(target && { target }),
      });
      ratios.push({
        section: "throughput",
        what: `worker CPU per delivery, ${name} ÷ ${other}`,
        unit: "×",
        values: compare(({ workerCpuUs }) => workerCpuUs),
      });
    }
    ratios.push({
      section: "throughput",
      what: `answer to its record at full load, p99: ${name}`,
      unit: "ms",
      values: spread(mine.map(({ recordDelayMs = Number.NaN }) => recordDelayMs)),
      target: { below: 50 },
    });
  }
  return ratios;
}

function capture({ capture: list = [] }: Results): Ratio[] {
  return list.map(({ database, second, shares }) => ({
    section: "capture",
    what: `${database}: transactions a second, insert + ${second} ÷ two inserts`,
    unit: "×",
    values: spread(shares),
    ...(database === "PostgreSQL" && second === "emit" && { target: { atLeast: 0.7 } }),
  }));
}

function latencies({ latency: list = [] }: Results): Ratio[] {
  return list.flatMap(({ contestant, processes, load, latency }) => {
    const place = `${contestant}, ${load === "idle" ? "idle" : "half load"}, ${processes === "one" ? "one process" : "two processes"}`;
    const line = (which: string, value: number, below?: number): Ratio => ({
      section: "latency",
      what: `emit to received, ${which}: ${place}`,
      unit: "ms",
      values: once(value),
      ...(below !== undefined && { target: { below } }),
    });
    const targets = isOurs(contestant) && load === "idle" ? (processes === "one" ? [10, 50] : [100]) : [];
    return [line("p50", latency.p50, targets[0]), line("p99", latency.p99, targets[1])];
  });
}

function backlog({ backlog: measured }: Results): Ratio[] {
  if (!measured) return [];
  const [none, ...claims] = measured.claims;
  const base = spread(none?.ms ?? []);
  const ratios: Ratio[] = claims.map(({ beside, ms }) => ({
    section: "backlog",
    what: `claim of 100 rows beside ${beside} ÷ beside nothing`,
    unit: "×",
    values: spread(ms.map((each) => each / base.median)),
    target: { below: 2 },
  }));
  const [empty] = measured.backlog;
  const one = (what: string, unit: Ratio["unit"], value: number, below: number): Ratio => ({
    section: "backlog",
    what,
    unit,
    values: once(value),
    target: { below },
  });
  for (const { rows, latency, rssMb, queriesPerSecond } of measured.backlog) {
    const beside = `beside ${rows.toLocaleString("en")} rows of one dead lane`;
    if (empty && rows > 0)
      ratios.push(
        one(`p99 of other lanes ${beside} ÷ beside nothing`, "×", latency.p99 / empty.latency.p99, 2),
      );
    ratios.push(one(`memory of the worker process ${beside}`, "MB", rssMb, 150));
    ratios.push(one(`queries while idle ${beside}`, "/s", queriesPerSecond, 5));
  }
  return ratios;
}

export function shown(value: number): string {
  if (Number.isNaN(value)) return "";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function targetText({ target, unit }: Ratio): string {
  if (!target) return "";
  const suffix = unit === "×" ? " ×" : unit === "/s" ? "/s" : ` ${unit}`;
  return "atLeast" in target ? `at least ${target.atLeast}${suffix}` : `below ${target.below}${suffix}`;
}

const heads = ["", "unit", "min", "median", "max", "target", "reached"] as const;

export function rowsOf(ratios: readonly Ratio[]): string[][] {
  return ratios.map((ratio) => {
    const { values, unit, what } = ratio;
    const reached = isReached(ratio);
    return [
      what,
      unit,
      shown(values.min),
      shown(values.median),
      shown(values.max),
      targetText(ratio),
      reached === undefined ? "" : reached ? "yes" : "NO",
    ];
  });
}

/** For the terminal. */
export function tableText(ratios: readonly Ratio[]): string {
  const rows = [[...heads], ...rowsOf(ratios)];
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
