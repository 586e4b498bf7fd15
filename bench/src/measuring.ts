import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds of a steady clock that all processes of the machine share. */
export function steadyMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return { min: sorted[0] ?? Number.NaN, median: quantile(sorted, 0.5), max: sorted.at(-1) ?? Number.NaN };
}

/** Of sorted values; between two of them in proportion. */
export function quantile(sorted: readonly number[], share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)]!;
  const above = sorted[Math.ceil(place)]!;
  return below + (above - below) * (place - Math.floor(place));
}

export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
  readonly count: number;
}

export function latency(values: readonly number[]): Latency {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    most: sorted.at(-1) ?? Number.NaN,
    count: sorted.length,
  };
}

const ticksPerSecond = 100;

/**
 * CPU seconds that a process, its children and those they have buried used so far. Undefined where the system does
 * not say (outside Linux).
 */
export function cpuSecondsOfTree(pid: number): number | undefined {
  try {
    const own = ticksOf(pid);
    const children = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => statOf(Number(name)))
      .filter((stat) => stat?.parent === pid);
    const ticks = children.reduce((sum, stat) => sum + stat!.ticks, own);
    return ticks / ticksPerSecond;
  } catch {
    return undefined;
  }
}

function ticksOf(pid: number): number {
  return statOf(pid)?.ticks ?? 0;
}

function statOf(pid: number): { readonly parent: number; readonly ticks: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name is in brackets and may contain anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0);
    return { parent: Number(fields[1]), ticks };
  } catch {
    return undefined;
  }
}
