import { cpus, totalmem } from "node:os";
import type { Postgres } from "../postgres.ts";

/** What was measured on, for the page. Nothing in it names the machine. */
export async function describeMachine(postgres: Postgres): Promise<string> {
  const list = cpus();
  const model = list[0]?.model.replace(/\s+/g, " ").trim() || "unknown processor";
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${list.length} cores (${model}), ${memory} GB, Node ${process.versions.node}, PostgreSQL ${await postgres.version()}, SQLite ${process.versions.sqlite}`;
}
