import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { compileCache } from "./packages/hookwell/test/support/compile-cache.ts";

// The processes of a run, and those that they start, load the same drivers, frameworks and libraries.
process.env.NODE_COMPILE_CACHE ??= compileCache;

/** Files that take a minute begin first: one that began last would keep one core busy and the others idle. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/(random|crash|contract)\/|\/(npm-start|serve|booking-in-browser)\.test/.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const long = process.env.HOOKWELL_LONG !== undefined;
const reportOf = long ? "-long" : process.env.HOOKWELL_TEST_POSTGRES_HOME ? "-oldest" : "";

/** Minutes of processes that die, and of pages that are looked at in many ways: CI runs them after npm test. */
const slow = [
  "apps/appointments/test/crash/**",
  "apps/appointments/test/pages/{looks,managing,npm-start}-in-browser.test.ts",
];

/** It has a thread for each core, so nothing runs beside it. */
const simulator = ["packages/hookwell/test/simulator/**/*.test.ts"];

/** Files that change what belongs to their process: its environment, its clock, its timers. */
const alone = [
  "packages/hookwell/test/crash/**/*.test.ts",
  "packages/hookwell/test/cli/doctor.test.ts",
  "packages/hookwell/test/acceptance/field-faults-g-network.test.ts",
  "packages/hookwell/test/postgres/clocks.test.ts",
  "apps/appointments/test/invitations-sweep.test.ts",
];

// What a file of either kind is run with. Tests import packages by name and get their sources.
const common = {
  resolve: { conditions: ["@hookwell/source"] },
  ssr: { resolve: { conditions: ["@hookwell/source"] } },
};
const each = {
  execArgv: ["--conditions=@hookwell/source"],
  // Only what hangs runs into these: on a machine with other work, an honest second can take a minute.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  pool: "forks" as const,
  // One more than the two cores of CI: a third of what the slower files do is waiting for a browser or a child.
  maxWorkers: 3,
};
const apartFrom = ["**/node_modules/**", ...(long ? [] : slow)];

export default defineConfig({
  ...common,
  test: {
    ...each,
    globalSetup: ["./packages/hookwell/test/support/postgres-server.ts"],
    sequence: { sequencer: LongestFirst },
    reporters: process.env.CI
      ? ["default", ["json", { outputFile: `node_modules/.vitest-report${reportOf}.json` }]]
      : ["default"],
    projects: [
      {
        ...common,
        test: {
          ...each,
          name: "simulator",
          include: simulator,
          exclude: apartFrom,
          sequence: { groupOrder: 0 },
        },
      },
      {
        ...common,
        test: { ...each, name: "alone", include: alone, exclude: apartFrom, sequence: { groupOrder: 1 } },
      },
      {
        ...common,
        test: {
          ...each,
          name: "shared",
          include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"],
          exclude: [...apartFrom, ...alone, ...simulator],
          sequence: { groupOrder: 1 },
          // One process runs file after file: loading the same modules again for each, and running them before they
          // are compiled well, was two fifths of the time of all tests.
          isolate: false,
        },
      },
    ],
  },
});
