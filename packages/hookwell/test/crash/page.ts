import { cpus } from "node:os";
import { type Trouble, troubles } from "./load.ts";
import { type CrashPoint, nameOf } from "./points.ts";
import type { Tally } from "./tally.ts";

/** One line of the table. */
export interface Result extends Tally {
  readonly where: "SQLite" | "PostgreSQL";
  readonly what: { readonly point: CrashPoint } | { readonly trouble: Trouble };
}

const begin = "<!-- Written by `npm run crash`, up to the end mark. -->";
const end = "<!-- end of what `npm run crash` writes -->";

export const failed = ({ lost, invented, changed }: Tally): boolean => lost + invented + changed > 0;

/** One line for a terminal. */
export function lineOf(result: Result): string {
  const { where, what, rounds, committed, lost, invented, duplicates, stallMs } = result;
  const name = "point" in what ? nameOf(what.point) : what.trouble;
  const stall = stallMs === undefined ? "" : `, longest stall ${seconds(stallMs)}`;
  return `${where}, ${name}: ${rounds} rounds, ${committed} committed, ${lost} lost, ${invented} from rolled-back, ${duplicates} duplicates${stall}`;
}

/** The page with its generated part made anew; what others write around it stays. */
export function withTable(page: string | undefined, results: readonly Result[], versions: string): string {
  const text = page ?? "# Reliability\n";
  const section = `${begin}\n\n${sectionOf(results, versions)}\n${end}`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) return `${text.trimEnd()}\n\n${section}\n`;
  return text.slice(0, from) + section + text.slice(to + end.length);
}

function sectionOf(results: readonly Result[], versions: string): string {
  const killed = results.filter(({ what }) => "point" in what);
  const loaded = results.filter(({ what }) => "trouble" in what);
  const sum = (key: "rounds" | "committed" | "lost" | "invented"): number =>
    results.reduce((total, result) => total + result[key], 0);
  return `## Real crashes

${sum("rounds")} rounds, ${sum("committed")} committed events: ${sum("lost")} lost, ${sum("invented")} from transactions that were rolled back.
Made anew by \`npm run crash\` (\`--help\`); the last time with ${versions}.

**Processes killed.** Each round is a process of its own that changes a row and publishes it in one transaction, dispatches,
sends over HTTP to two endpoints and records. It reports the point, everything in it stands still, and SIGKILL ends it
there. The next one goes on an hour later, by its clock. At the end what is left is finished, and the application's table
is compared with what the endpoints received. Duplicates come only from sends whose outcome nobody could record; they have
the same ids and the same bytes. What a replay asked for is no duplicate.

| store | killed at | which is | rounds | committed | lost | from rolled-back | duplicates |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
${killed.map(killedRow).join("\n")}

**Trouble under load.** Three worker processes on one PostgreSQL with its settings of production, about a hundred
transactions a second, one in four of them rolled back, five endpoints. The longest stall is the longest time from a commit to
the first arrival of its event at an endpoint. What a killed worker had in its hands, and what a claim took whose answer was
lost with its connection, is free when its lease of 30 s ends; nothing else waits for that.

| PostgreSQL | which is | rounds | committed | lost | from rolled-back | duplicates | longest stall |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
${loaded.map(loadedRow).join("\n")}
`;
}

function killedRow({ where, what, rounds, committed, lost, invented, duplicates }: Result): string {
  if (!("point" in what)) return "";
  return `| ${where} | ${nameOf(what.point)} | ${what.point.means} | ${rounds} | ${committed} | ${lost} | ${invented} | ${duplicates} |`;
}

function loadedRow({ what, rounds, committed, lost, invented, duplicates, stallMs = 0 }: Result): string {
  if (!("trouble" in what)) return "";
  return `| ${what.trouble} | ${troubles[what.trouble]} | ${rounds} | ${committed} | ${lost} | ${invented} | ${duplicates} | ${seconds(stallMs)} |`;
}

export const machine = (): string =>
  `Node ${process.versions.node} on ${process.platform}, ${cpus().length} cores`;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
