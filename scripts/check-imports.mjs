// The folder rule of the house: inside the library, imports only point down the list of stages.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(dirname(fileURLToPath(import.meta.url))), "packages/hookwell/src");
const stages = ["cli", "index", "publish", "dispatch", "deliver", "send", "store", "model", "adapters"];
// Nobody imports the test tools or the CLI; the test tools may import any stage (docs/decisions/0003).
const leaves = ["testing"];

const stageOf = (file) => {
  const first = relative(root, file).split("/")[0];
  return first === "index.ts" ? "index" : first;
};

function* files(directory) {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (path.endsWith(".ts")) yield path;
  }
}

const faults = [];
for (const file of files(root)) {
  const from = stageOf(file);
  for (const [, target] of readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
    const to = stageOf(resolve(dirname(file), target));
    if (from === to || leaves.includes(from)) continue;
    const up = !stages.includes(from) || !stages.includes(to) || stages.indexOf(to) < stages.indexOf(from);
    if (up) faults.push(`${relative(root, file)} imports ${target}: ${from} may not import ${to}`);
  }
}
if (faults.length > 0) {
  console.error(`${faults.join("\n")}\nImports only point down: ${stages.join(" -> ")}`);
  process.exit(1);
}
