#!/usr/bin/env node
import { runCli } from "./run-cli.ts";

const code = await runCli(process.argv.slice(2), {
  environment: process.env,
  print: (line) => process.stdout.write(`${line}\n`),
  note: (line) => process.stderr.write(`${line}\n`),
});
if (code !== undefined) process.exitCode = code;
