import { cpus } from "node:os";
import { type Trouble, troubles } from "./load.ts";
import { type CrashPoint, nameOf } from "./points.ts";
import { markdownTable } from "./table.ts";
import type { Tally } from "./tally.ts";

/** One line of the tables. */
export interface Result extends Tally {
  readonly where: "SQLite" | "PostgreSQL";
  readonly what: { readonly point: CrashPoint } | { readonly trouble: Trouble };
}

export const failed = ({ lost, invented, changed }: Pick<Tally, "lost" | "invented" | "changed">): boolean =>
  lost + invented + changed > 0;

/** One line for a terminal. */
export function lineOf(result: Result): string {
  const { where, what, rounds, committed, lost, invented, changed, duplicates, stallMs, silentMs } = result;
  const name = "point" in what ? nameOf(what.point) : what.trouble;
  const waits =
    stallMs === undefined || silentMs === undefined
      ? ""
      : `, longest stall ${seconds(stallMs)}, longest silence ${seconds(silentMs)}`;
  return `${where}, ${name}: ${rounds} rounds, ${committed} committed, ${lost} lost, ${invented} from rolled-back, ${changed} changed, ${duplicates} duplicates${waits}`;
}

/** What a run was made with. */
export const machine = (): string =>
  `Node ${process.versions.node} on ${process.platform}, ${cpus().length} cores`;

/** docs/reliability.md. */
export function pageOf(results: readonly Result[], versions: string): string {
  const sum = (
    key: "rounds" | "rolledBack" | "committed" | "lost" | "invented" | "changed" | "duplicates",
  ): number => results.reduce((total, result) => total + result[key], 0);
  return `# Reliability

What Hookwell promises when processes die and databases go away, and what happened when they did. This page is written
by \`npm run crash\`, whole; the last time with ${versions}.

**${count(sum("rounds"))} rounds, ${count(sum("committed"))} committed events: ${sum("lost")} lost, ${sum("invented")} from the ${count(sum("rolledBack"))} transactions that were rolled
back, ${sum("changed")} repeats with other bytes, ${count(sum("duplicates"))} duplicates.**

## What is promised

- An event exists if, and only if, its transaction was committed. Every committed event reaches every endpoint that is
  subscribed to it, whatever is killed in between, as long as the database keeps what it has committed.
- Each is sent at least once. In steady state that is once; what is sent again has the same event id, the same delivery
  id and the same bytes.
- A process that dies takes nothing with it. There is nothing to repair and nothing to restart in an order: another
  worker goes on, or the same one after its start.

## How it is tried

**Processes killed.** Each round is a process of its own. It changes a row and publishes that in one transaction,
dispatches, sends over HTTP to two endpoints and records the outcomes. At the point of the round it reports, everything
in it stands still, and only then SIGKILL ends it. The next process takes on what it left; by its clock it lives an
hour later, so that leases have ended. In the end what is left is finished, and the application's own table is compared
with what the endpoints received. The points are on both sides of what each step commits: before, nobody may find
anything of it; after, nobody may do it again.

**Trouble under load.** Three worker processes share one PostgreSQL that has the settings of production (fsync and
synchronous_commit on). Four connections of an application change and publish all the time, and roll one transaction
in four back; five endpoints, which take up to 60 ms to answer, are subscribed to all of it. Then one of the workers, at random, is killed with SIGKILL; or
PostgreSQL is stopped and started, or its processes are killed; or connections are ended. A commit whose answer was lost
counts by whether its row is there.

Whatever is lost, invented or changed makes the run fail, and this page is not written. The same points are in the test
suite, where \`npm run test:long\` kills twenty processes at each. [The simulator](guides/simulator.md) does the same to
thousands of worlds on virtual time, at any call of the store and any statement, with networks that lose and delay.

## Processes killed

${killedTable(results)}
In rounds of "capture, before" nothing is ever committed. Those of "prune" and "replay" may publish more than one event.
What a replay asks for is no duplicate.

## Trouble under load

${loadedTable(results)}
The longest stall is the longest time from a commit to the first arrival of its event at an endpoint, of all events and
endpoints. The longest silence is the longest time in which nothing arrived anywhere, while the application went on.

## Why there are duplicates

A receiver has answered, and the worker dies before it has recorded that. Nobody else can know of the answer: either it is
sent again, or it may be lost. Hookwell sends it again, when the lease of the row ends, with the same \`webhook-id\`;
[a receiver that keeps the ids it has seen](guides/receiving.md) drops it. So duplicates are possible
where a process dies between a send and its record ("send, after", "record"). At the other points at which sends are
under way ("dispatch", "claim", "send, before", "replay") it may die so with a row that lives before it left; lives that
are killed one after the other before they can record send again what those before them had sent. "capture", "prune"
and "migrate" may have no duplicate, and a run of the tests fails if they have.

## What a stall consists of

- A worker holds what it has claimed under a lease of 30 s. When it is killed, its rows are free when that ends, and no
  earlier: nobody can tell a dead worker from one that is only slow. Those few rows are the longest stall. All others,
  of the same endpoint too, go on with the other workers: the longest silence is short.
- A claim is committed before its rows are read and sent. When the connection ends between the two, the worker gives
  the rows back as soon as PostgreSQL answers again. When it ends while the claim itself is answered, the rows are taken
  and no worker knows of them: they wait for the end of their lease, as a killed worker's do.
- While PostgreSQL is away nothing is sent, and the application cannot commit either. Workers look again at growing
  distances, at most 5 s, and go on by themselves. The longest silence is that and the time that PostgreSQL takes to stop
  and start, which on a busy disk (a checkpoint before the stop, a recovery after a crash) is most of it.
- LISTEN only wakes workers earlier. When it is lost, they poll, up to 1 s apart, until they listen again.

## Make it anew

\`\`\`sh
npm run crash                              # everything; less than ten minutes on a machine that does nothing else
npm run crash -- --rounds 100              # more processes killed
npm run crash -- --only send,record        # some steps; nothing is written then
npm run crash -- --only load               # the troubles
npm run crash -- --help
\`\`\`

It needs nothing but npm. Exit code 0: nothing was lost, invented or changed; 1: something was.
`;
}

const counted = ["#rounds", "#committed", "#lost", "#from rolled-back", "#duplicates"];

function countsOf({ rounds, committed, lost, invented, duplicates }: Tally): number[] {
  return [rounds, committed, lost, invented, duplicates];
}

function killedTable(results: readonly Result[]): string {
  const rows = results.flatMap((result) => {
    const { where, what } = result;
    if (!("point" in what)) return [];
    return [[where, nameOf(what.point), what.point.means, ...countsOf(result)]];
  });
  return markdownTable(["store", "killed at", "which is", ...counted], rows);
}

function loadedTable(results: readonly Result[]): string {
  const rows = results.flatMap((result) => {
    const { what, stallMs = 0, silentMs = 0 } = result;
    if (!("trouble" in what)) return [];
    return [[what.trouble, troubles[what.trouble], ...countsOf(result), seconds(stallMs), seconds(silentMs)]];
  });
  return markdownTable(["PostgreSQL", "which is", ...counted, "#longest stall", "#longest silence"], rows);
}

const count = (value: number): string => value.toLocaleString("en-US");
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
