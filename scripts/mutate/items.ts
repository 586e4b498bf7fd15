import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** An item of the acceptance lists, as the names of tests carry it: "events 17", "field-faults D9", "bookings 3". */
export const acceptanceItem = /^(events|bookings|field-faults) ([A-J]?[0-9]+)$/;

/** Names of the tests of an item: of the acceptance lists, several of which one name may carry, or a promise's words. */
export function patternOf(item: string): string {
  const [, list, number] = acceptanceItem.exec(item) ?? [];
  return list === undefined
    ? item.replaceAll(/[^\w\s]/g, "\\$&")
    : `\\b${list} ([A-J]?[0-9]+(, ?| and ))*${number}\\b`;
}

interface TestFile {
  readonly path: string;
  readonly text: string;
}

function filesUnder(folder: string): TestFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** What dies, rolls dice or simulates takes minutes, and says less than a test that is made for the item. */
const testFiles = ["packages/hookwell/test", "packages/server/test", "apps/appointments/test"]
  .flatMap(filesUnder)
  .filter(({ path }) => path.endsWith(".test.ts") && !/\/(crash|random|simulator|pages)\//.test(path));
const contractRules = filesUnder("packages/hookwell/src/testing/contract");

/** The contract suite is run for each store: one whose own code has the fault, else memory, which is the quickest. */
function contractTest(faultIn: string): string {
  const store = /\/store\/(sqlite|postgres)\//.exec(faultIn)?.[1] ?? "memory";
  return `packages/hookwell/test/contract/${store}.test.ts`;
}

/** Test files that carry the item and can notice a fault in this file. */
export function filesOf(item: string, faultIn: string): string[] {
  const [list] = acceptanceItem.exec(item)?.slice(1) ?? [];
  // Some names are put together where they are given.
  const pattern = new RegExp(list === undefined ? patternOf(item) : `${patternOf(item)}|\`${list} \\$\\{`);
  const files = testFiles.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
  // Nothing outside of the application imports it.
  if (faultIn.startsWith("apps/")) return files.filter((path) => path.startsWith("apps/"));
  return contractRules.some(({ text }) => pattern.test(text)) ? [...files, contractTest(faultIn)] : files;
}
