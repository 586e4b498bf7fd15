#!/usr/bin/env node
import { runCli } from "./run-cli.ts";
import { processTerminal } from "./terminal/process-terminal.ts";

const { terminal, end } = processTerminal();
const code = await runCli(process.argv.slice(2), terminal);
// An application's module (--config) may hold a pool or a timer that would keep the process.
if (code !== undefined) end(code);
