import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { acceptanceItem, filesOf } from "../../../../scripts/mutate/items.ts";
import { mutations } from "../../../../scripts/mutate/mutations.ts";

const root = new URL("../../../../", import.meta.url);

test("every line that npm run mutate changes is there once", () => {
  const times = mutations.map(({ name, file, from }) => ({
    name,
    times: readFileSync(new URL(file, root), "utf8").split(from).length - 1,
  }));
  expect(times.filter(({ times }) => times !== 1)).toEqual([]);
});

test("each of its faults changes one line, and names an item that has tests", () => {
  for (const { name, file, from, to, item } of mutations) {
    const after = to.split("\n");
    const changed = from.split("\n").filter((line, at) => line !== after[at]);
    expect(changed, name).toHaveLength(1);
    expect(filesOf(item, file), name).not.toEqual([]);
  }
  const named = mutations.filter(({ item }) => acceptanceItem.test(item));
  expect(named.length).toBeGreaterThanOrEqual(30);
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length);
});
