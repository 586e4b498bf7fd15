// Reads the reports of the last test runs and fails when a claimed acceptance item (acceptance.json) has no passed
// test or a skipped one. A test carries an item by its name: "events 17: …", "field-faults D9: …".
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
// What npm test and npm run test:long wrote under CI.
const results = ["node_modules/.vitest-report.json", "node_modules/.vitest-report-long.json"].flatMap(
  (path) => JSON.parse(readFileSync(join(root, path), "utf8")).testResults,
);
const claims = JSON.parse(readFileSync(join(root, "acceptance.json"), "utf8"));

/** "A1-A5" -> A1 … A5; "1-42" -> 1 … 42; "J1" -> J1. */
function expand(range) {
  const [first, last] = range.split("-");
  if (last === undefined) return [first];
  const letter = first.replace(/\d+$/, "");
  const from = Number(first.slice(letter.length));
  const to = Number(last.slice(letter.length));
  return Array.from({ length: to - from + 1 }, (_, i) => `${letter}${from + i}`);
}

const items = new Map();
for (const [list, ranges] of Object.entries(claims))
  for (const range of ranges)
    for (const item of expand(range)) items.set(`${list} ${item}`, { passed: 0, skipped: [] });

let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of results) {
  for (const test of file.assertionResults) {
    if (test.status === "passed") passed++;
    else if (test.status === "failed") failed++;
    else skipped++;
    for (const [name, list, numbers] of test.fullName.matchAll(
      /\b(events|bookings|field-faults) ((?:[A-J]?\d+)(?:(?:, ?| and )[A-J]?\d+)*)/g,
    )) {
      if (name === undefined) continue;
      for (const number of numbers.split(/, ?| and /)) {
        const item = items.get(`${list} ${number}`);
        if (item === undefined) continue;
        if (test.status === "passed") item.passed++;
        else if (test.status !== "failed") item.skipped.push(test.fullName);
      }
    }
  }
}

const faults = [];
for (const [item, { passed: count, skipped: names }] of items) {
  if (count === 0) faults.push(`${item}: no test that passed`);
  for (const name of names) faults.push(`${item}: skipped: ${name}`);
}
console.log(`${items.size} acceptance items claimed, ${faults.length} without their proof`);
if (faults.length > 0) console.error(faults.join("\n"));
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(faults.length > 0 || failed > 0 ? 1 : 0);
