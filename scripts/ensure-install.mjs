// Runs before npm start and npm test, on any Node from 20: installs when node_modules does not match the lockfile.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampFile = join(root, "node_modules", ".hookwell-lock-hash");
const wanted = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex");
const found = existsSync(stampFile) ? readFileSync(stampFile, "utf8") : "";

if (found !== wanted) {
  console.error("Installing packages (npm ci): node_modules does not match package-lock.json ...");
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm, "ci"]] : ["npm", ["ci"]];
  const env = { ...process.env, npm_config_loglevel: "error" };
  const run = spawnSync(command, [...args, "--no-audit", "--no-fund"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
    env,
  });
  if (run.status !== 0) {
    console.error("npm ci failed; its message is above. Mend that and run the command again.");
    process.exit(run.status ?? 1);
  }
  writeFileSync(stampFile, wanted);
}
