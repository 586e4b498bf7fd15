import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const table = readFileSync(`${root}docs/seeds-to-tests.md`, "utf8");
const sources = [
  ...globSync("apps/*/test/**/*.ts", { cwd: root }),
  ...globSync("packages/*/test/**/*.ts", { cwd: root }),
  ...globSync("packages/hookwell/src/testing/**/*.ts", { cwd: root }),
].map((path) => ({ path, text: readFileSync(root + path, "utf8") }));

/** Items that the name of some test begins with, such as `bookings 26` and `field-faults A2`. */
function namedItems(): Set<string> {
  const items = new Set<string>();
  for (const { text } of sources)
    for (const [, list, numbers] of text.matchAll(
      /["`](?:.{0,60}, )?(events|bookings|field-faults) ((?:[A-J]?\d+)(?:(?:, ?| and )[A-J]?\d+)*):/g,
    ))
      for (const number of numbers!.split(/, ?| and /)) items.add(`${list} ${number}`);
  return items;
}

function rows(): { statement: string; tests: string[] }[] {
  return table
    .split("\n")
    .filter((line) => line.startsWith("| ") && !/^\| (---|statement)/.test(line))
    .map((line) => {
      const [, statement = "", tests = ""] = line.split("|");
      return {
        statement: statement.trim(),
        tests: [...tests.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
      };
    });
}

test("every test that docs/seeds-to-tests.md names is there, and every statement has one", () => {
  const items = namedItems();
  const missing: string[] = [];
  for (const { statement, tests } of rows()) {
    if (tests.length === 0) missing.push(`${statement}: no test`);
    for (const name of tests) {
      const [, file, words] = /^(\S+\.ts) "(.+)"$/.exec(name) ?? [];
      const isThere =
        file === undefined
          ? items.has(name)
          : sources.some(({ path, text }) => path.endsWith(`/${file}`) && text.includes(words!));
      if (!isThere) missing.push(`${statement}: ${name}`);
    }
  }
  expect(rows().length).toBeGreaterThan(50);
  expect(missing).toEqual([]);
});
