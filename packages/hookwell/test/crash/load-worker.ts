// A worker process under load: dispatches and delivers until it is killed or its standard input ends.
import { createHookwell } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import pg from "pg";
import { events, network } from "./application.ts";

const connectionString = process.env.CRASH_DATABASE;
const encryptionKeys = process.env.CRASH_KEYS ?? "";
const pool = new pg.Pool({ connectionString, max: 4 });
const store = postgresStore({ pool, encryptionKeys, listen: { connectionString: connectionString ?? "" } });
const hooks = createHookwell({
  store,
  project: "live",
  events,
  network,
  logger: { info() {}, warn() {}, error() {} },
});
await hooks.ready();
hooks.start();
process.stdout.write("READY\n");
process.stdin.resume().once("end", () => process.exit(0));
