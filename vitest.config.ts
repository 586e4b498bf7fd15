import { defineConfig } from "vitest/config";

// One configuration for the whole repository. Tests import packages by name and get their sources.
export default defineConfig({
  resolve: { conditions: ["@hookwell/source"] },
  ssr: { resolve: { conditions: ["@hookwell/source"] } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"],
    globalSetup: ["./packages/hookwell/test/support/postgres-server.ts"],
    execArgv: ["--conditions=@hookwell/source"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    reporters: process.env.CI
      ? ["default", ["json", { outputFile: "node_modules/.vitest-report.json" }]]
      : ["default"],
  },
});
