import { mkdir, readFile, writeFile } from "node:fs/promises";
import { spread } from "../measuring.ts";
import type { Results } from "../run.ts";
import { chart } from "./chart.ts";
import { type Ratio, rowsOf, shown } from "./ratios.ts";

interface PageParts {
  readonly machine: string;
  readonly results: Results;
  readonly ratios: readonly Ratio[];
}

const docs = new URL("../../../docs/", import.meta.url);
const notes = new URL("../../notes.md", import.meta.url);

/** Writes docs/benchmarks.md and its chart; answers the page's path in the repository. */
export async function writePage(parts: PageParts): Promise<string> {
  await mkdir(new URL("images/", docs), { recursive: true });
  await writeFile(new URL("images/benchmarks.svg", docs), chart(parts.results));
  await writeFile(new URL("benchmarks.md", docs), pageText(parts, await readFile(notes, "utf8")));
  return "docs/benchmarks.md";
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heads, ...rows];
  const widths = heads.map((_, column) => Math.max(3, ...all.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  return [line(heads), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rows.map(line)].join(
    "\n",
  );
}

function pageText({ machine, results, ratios }: PageParts, remarks: string): string {
  const throughput = (results.throughput ?? []).map(({ contestant, rounds }) => {
    const median = (value: (round: (typeof rounds)[number]) => number | undefined): string =>
      shown(spread(rounds.flatMap((round) => value(round) ?? [])).median);
    return [
      contestant,
      median(({ perSecond }) => perSecond),
      median(({ workerCpuUs }) => workerCpuUs),
      median(({ databaseCpuUs }) => databaseCpuUs),
      median(({ rssMb }) => rssMb),
    ];
  });
  const curves = (results.scaling ?? []).map(({ name, unit, points }) => {
    // Processes side by side were not looked at one by one.
    const hasCpu = points.some(({ workerCpuUs }) => workerCpuUs !== undefined);
    const rows = points.map(({ at, perSecond, workerCpuUs = Number.NaN, databaseCpuUs = Number.NaN }) => [
      at.toLocaleString("en"),
      shown(perSecond),
      ...(hasCpu ? [shown(workerCpuUs), shown(databaseCpuUs)] : []),
    ]);
    const heads = [unit, "deliveries/s", ...(hasCpu ? ["worker CPU, µs", "database CPU, µs"] : [])];
    return `${name[0]!.toUpperCase()}${name.slice(1)}:\n\n${table(heads, rows)}`;
  });
  const claims = (results.backlog?.claims ?? []).map(({ beside, ms }) => {
    const { min, median, max } = spread(ms);
    return [beside, shown(min), shown(median), shown(max)];
  });
  const missing = results.missing.map((line) => `Not measured here: ${line}.`).join("\n");
  return `<!-- Written by \`npm run bench\`; the remarks are bench/notes.md. -->

# Benchmarks

Measured by \`npm run bench\` in one run on ${machine}.

fsync and synchronous_commit are on for everybody, and Redis appends with fsync always. All rounds ran in turns, so
ratios are between neighbours in time. Absolute numbers say something about this machine; the ratios are what to read.

${missing ? `${missing}\n\n` : ""}![Deliveries a second, latency and backlog](images/benchmarks.svg)

## Ratios and targets

What has no smallest and largest value was measured once.

${table(["", "unit", "min", "median", "max", "target", "reached"], rowsOf(ratios))}

## Deliveries a second and CPU

Twenty subscriptions, bodies of about 800 bytes, one worker process, a receiver in its own process. All but the bare loop,
which only signs and posts, do the same: durable work is waiting, each piece is one signed POST, and its outcome is
recorded. A round counts only if what was emitted, received and recorded agrees. Hookwell's rounds include matching and
fan-out, which the peers' jobs have behind them. Medians, per delivery.

${table(["", "deliveries/s", "worker CPU, µs", "PostgreSQL CPU, µs", "worker memory, MB"], throughput)}

## Claims

Milliseconds of a claim of 100 rows out of 2,000 on 20 lanes, body and endpoint read, on PostgreSQL.

${table(["beside", "min", "median", "max"], claims)}

## Scaling

${curves.join("\n\n")}

${remarks.trim().replaceAll("](../docs/", "](")}
`;
}
