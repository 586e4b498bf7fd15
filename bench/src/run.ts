import type { Contestant, World } from "./contestants/contract.ts";
import { allContestants } from "./contestants/index.ts";
import { spread } from "./measuring.ts";
import type { Options, Section } from "./options.ts";
import type { Receiver } from "./receiver-process.ts";
import { type BacklogResult, type ClaimResult, measureBacklog } from "./sections/backlog.ts";
import { type CaptureResult, measureCapture } from "./sections/capture.ts";
import { type LatencyResult, measureLatencies } from "./sections/latency.ts";
import { type Curve, scaleBodies, scaleSubscriptions, scaleWorkers } from "./sections/scaling.ts";
import { measureThroughput, type ThroughputResult } from "./sections/throughput.ts";

/** All that one run measured; what was not asked for is absent. */
export interface Results {
  throughput?: ThroughputResult[];
  latency?: LatencyResult[];
  capture?: CaptureResult[];
  backlog?: { readonly backlog: BacklogResult[]; readonly claims: ClaimResult[] };
  scaling?: Curve[];
  /** Peers that were not there, and why. */
  readonly missing: string[];
}

const shape = { subscriptions: 20, bodyBytes: 700 };

export async function runSections(
  options: Options,
  world: World,
  receiver: Receiver,
  report: (line: string) => void,
): Promise<Results> {
  const { quick, deliveries, rounds } = options;
  const missing: string[] = [];
  const list = (await allContestants()).filter((contestant) => isHere(contestant, options, world, missing));
  for (const line of missing) report(`SKIPPED ${line}`);
  const results: Results = { missing };
  const section = async (name: Section, measure: () => Promise<void>): Promise<void> => {
    if (!options.sections.has(name)) return;
    report(`-- ${name}`);
    await measure();
  };

  await section("throughput", async () => {
    results.throughput = await measureThroughput(
      list,
      world,
      receiver,
      { shape, deliveries, rounds, ...(options.profile && { profile: options.profile }) },
      report,
    );
  });
  await section("latency", async () => {
    const rates = new Map(
      (results.throughput ?? []).map(({ contestant, rounds: measured }) => [
        contestant,
        spread(measured.map(({ perSecond }) => perSecond)).median,
      ]),
    );
    results.latency = await measureLatencies(
      list.filter(({ name }) => name !== "bare undici loop"),
      world,
      receiver,
      { shape, emits: quick ? 20 : 100, halfMs: quick ? 500 : 3_000, rates },
      report,
    );
  });
  await section("capture", async () => {
    results.capture = await measureCapture(world, {
      bodyBytes: shape.bodyBytes,
      rounds: quick ? 2 : 12,
      block: quick ? 50 : 400,
      connections: 4,
    });
    for (const { database, second, shares } of results.capture)
      report(
        `${database}: an insert and ${second} keeps ${(spread(shares).median * 100).toFixed(0)} % of two inserts`,
      );
  });
  await section("backlog", async () => {
    results.backlog = await measureBacklog(
      world,
      receiver,
      {
        sizes: quick ? [0, 2_000] : [0, 10_000, 100_000, 1_000_000],
        waitingLanes: quick ? 1_000 : 100_000,
        claims: quick ? 5 : 40,
        emits: quick ? 20 : 150,
      },
      report,
    );
  });
  await section("scaling", async () => {
    const tell = (curve: Curve): Curve => {
      for (const { at, perSecond } of curve.points)
        report(`${curve.name}: ${at.toLocaleString("en")} ${curve.unit}, ${Math.round(perSecond)}/s`);
      return curve;
    };
    results.scaling = [
      tell(await scaleWorkers(world, receiver, quick ? [1, 2] : [1, 2, 4, 8], deliveries)),
      tell(await scaleSubscriptions(world, receiver, quick ? [1, 20] : [1, 20, 1_000, 10_000], deliveries)),
      tell(await scaleBodies(world, receiver, [256, 4_096, 65_536, 261_000], deliveries)),
    ];
  });
  return results;
}

function isHere(contestant: Contestant, options: Options, world: World, missing: string[]): boolean {
  const { name } = contestant;
  if (options.contestants && !options.contestants.some((part) => name.toLowerCase().includes(part)))
    return false;
  const reason = contestant.missing?.(world);
  if (reason !== undefined) missing.push(`${name}: ${reason}`);
  return reason === undefined;
}
