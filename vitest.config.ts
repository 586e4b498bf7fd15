import { defineConfig } from "vitest/config";
import { compileCache } from "./packages/hookwell/test/support/compile-cache.ts";

// Each test file has a process of its own, and they all load the same drivers, frameworks and libraries.
process.env.NODE_COMPILE_CACHE ??= compileCache;

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
