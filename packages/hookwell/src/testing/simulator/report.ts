import { promises } from "./evidence.ts";
import { crashPoints, faultKinds } from "./faults.ts";
import type { Kind, Tally } from "./journal.ts";

/** Everything that enough seeds must exercise. */
const declared: readonly (readonly [kind: Kind, title: string, names: readonly string[]])[] = [
  ["crash", "crash points", crashPoints],
  ["fault", "faults", faultKinds],
  ["promise", "promises checked", promises],
];

/** What was never exercised. */
export function unexercised(tally: Tally): string[] {
  return declared.flatMap(([kind, title, names]) =>
    names.filter((name) => tally.of(kind, name) === 0).map((name) => `${title}: ${name}`),
  );
}

/** How often each crash point, fault and promise was exercised. */
export function table(tally: Tally): string {
  const lines: string[] = [];
  for (const [kind, title, names] of declared) {
    lines.push("", title);
    for (const name of names) lines.push(`${String(tally.of(kind, name)).padStart(12)}  ${name}`);
  }
  return lines.join("\n");
}

/** The lines of a trace that concern what is wrong, with what befell the processes. */
export function excerpt(trace: readonly string[], violations: readonly string[]): string[] {
  const ids = new Set(violations.flatMap((text) => text.match(/\b(?:dlv|evt)_[\w-]+/g) ?? []));
  const always =
    / (is killed|is frozen|loses its store|starts|gets an I\/O error|does not hear|has no faults)/;
  return trace.filter((line) => always.test(line) || [...ids].some((id) => line.includes(id)));
}
