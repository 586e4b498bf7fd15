import type { ReplayRecord } from "../model/replay.ts";
import { replayToJson } from "../publish/api-json.ts";
import type { Terminal } from "./command.ts";
import { type Column, printRecord } from "./terminal/table.ts";
import { shortTime } from "./times.ts";

/** Deliveries that a replay has queued and that have no outcome yet. */
export function stillPending({ queued, delivered, failed, cancelled }: ReplayRecord): number {
  return Math.max(0, queued - delivered - failed - cancelled);
}

export const replayColumns: readonly Column<ReplayRecord>[] = [
  { name: "REPLAY", value: ({ id }) => id },
  { name: "STATUS", value: ({ status }) => status },
  { name: "COUNT", value: ({ count }) => count },
  { name: "QUEUED", value: ({ queued }) => queued },
  { name: "DELIVERED", value: ({ delivered }) => delivered },
  { name: "FAILED", value: ({ failed }) => failed },
  { name: "OF", value: ({ statuses }) => statuses.join(",") },
  { name: "SINCE", value: ({ since }) => shortTime(since) },
  { name: "UNTIL", value: ({ until }) => shortTime(until) },
  { name: "CREATED", value: ({ createdAt }) => shortTime(createdAt) },
];

export function printReplay(terminal: Terminal, replay: ReplayRecord): void {
  const chosen = Object.entries(replayToJson(replay).filter).filter(([, value]) => value !== null);
  printRecord(terminal, [
    ["replay", replay.id],
    ["status", replay.status],
    ["error", replay.error],
    ["sends again", replay.statuses.join(", ")],
    ["since", shortTime(replay.since)],
    ["until", shortTime(replay.until)],
    ["of", chosen.map(([name, value]) => `${name} ${value}`).join("\n")],
    ["found", replay.count],
    ["queued", replay.queued],
    ["delivered", replay.delivered],
    ["failed", replay.failed],
    ["cancelled", replay.cancelled],
    ["on their way", stillPending(replay)],
    ["left alone", replay.skipped],
    ["created", shortTime(replay.createdAt)],
    ["finished", shortTime(replay.finishedAt)],
  ]);
}
