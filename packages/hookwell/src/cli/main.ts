#!/usr/bin/env node
import { runCli } from "./run-cli.ts";
import { processTerminal } from "./terminal/process-terminal.ts";

const code = await runCli(process.argv.slice(2), processTerminal());
// An application's module (--config) may hold a pool or a timer that would keep the process: what was printed is
// flushed first.
if (code !== undefined) process.stdout.write("", () => process.exit(code));
