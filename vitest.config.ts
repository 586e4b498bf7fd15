import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { compileCache } from "./packages/hookwell/test/support/compile-cache.ts";

// Each test file has a process of its own, and they all load the same drivers, frameworks and libraries.
process.env.NODE_COMPILE_CACHE ??= compileCache;

/** Files that take a minute begin first: one that began last would keep one core busy and the others idle. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/(random|crash|simulator)\//.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const long = process.env.HOOKWELL_LONG !== undefined;

/** Minutes of processes that die, and of pages that are looked at in many ways: CI runs them after npm test. */
const slow = [
  "apps/appointments/test/crash/**",
  "apps/appointments/test/pages/{looks,managing,npm-start}-in-browser.test.ts",
];

// One configuration for the whole repository. Tests import packages by name and get their sources.
export default defineConfig({
  resolve: { conditions: ["@hookwell/source"] },
  ssr: { resolve: { conditions: ["@hookwell/source"] } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"],
    exclude: ["**/node_modules/**", ...(long ? [] : slow)],
    globalSetup: ["./packages/hookwell/test/support/postgres-server.ts"],
    execArgv: ["--conditions=@hookwell/source"],
    // Only what hangs runs into these: on a machine with other work, an honest second can take a minute.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    // One more than the two cores of CI: a third of what the slower files do is waiting for a browser or a child.
    maxWorkers: 3,
    reporters: process.env.CI
      ? ["default", ["json", { outputFile: `node_modules/.vitest-report${long ? "-long" : ""}.json` }]]
      : ["default"],
  },
});
