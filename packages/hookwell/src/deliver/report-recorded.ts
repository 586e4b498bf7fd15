import type { Outcome } from "../model/delivery.ts";
import type { Observer } from "../model/observe.ts";
import type { RecordResult } from "../store/contract.ts";
import { type FailureHook, reportFailed } from "./failure-hook.ts";
import { type Entry, momentOf } from "./outcome-buffer.ts";

/** What became of deliveries so far. */
export interface DeliveryCounts {
  claimed: number;
  delivered: number;
  rescheduled: number;
  failed: number;
}

interface Reports {
  readonly observe: Observer;
  readonly failureHook?: FailureHook;
}

/**
 * Tells observers and the failure hook what became of each entry, and counts it. `gone`: a subscription went gone. An
 * entry that is neither recorded nor known to be stale could not be kept by the store, and its lease will end.
 */
export function reportRecorded(
  entries: readonly Entry[],
  recorded: RecordResult["recorded"],
  counts: DeliveryCounts,
  reports: Reports,
): { readonly gone: boolean } {
  const { observe } = reports;
  const byId = new Map(entries.map((entry) => [entry.outcome.id, entry]));
  let gone = false;
  for (const { id, status, attempts } of recorded) {
    const entry = byId.get(id);
    if (!entry) continue;
    byId.delete(id);
    const { outcome } = entry;
    const moment = { ...momentOf(entry.delivery), attempt: attempts };
    if (status === "delivered") {
      counts.delivered++;
      observe("delivered", moment);
    } else if (status === "failed") {
      counts.failed++;
      const { errorCode, error } = failureOf(outcome);
      const { leaseToken: _token, leaseUntil: _until, ...delivery } = entry.delivery;
      reportFailed({ ...delivery, status, attempts, lastError: error }, errorCode, reports);
      if (outcome.kind === "gone") {
        observe("subscriptionDisabled", { subscriptionId: delivery.subscriptionId, reason: "gone" });
        gone = true;
      }
    } else if (outcome.kind === "retry") {
      counts.rescheduled++;
      observe("rescheduled", { ...moment, delayMs: outcome.delayMs, error: outcome.exchange.error ?? "" });
    } else observe("released", moment);
  }
  for (const { delivery } of byId.values()) observe("leaseLost", momentOf(delivery));
  return { gone };
}

/** Tells observers of a change of a lane. */
export function reportLane(
  subscriptionId: string,
  change: RecordResult["lanes"][number]["change"],
  observe: Observer,
): void {
  if (change === "disabled") observe("subscriptionDisabled", { subscriptionId, reason: "failing" });
  else observe(change === "opened" ? "laneOpened" : "laneClosed", { subscriptionId });
}

function failureOf(outcome: Outcome): { errorCode: string; error: string } {
  if (outcome.kind === "failed") return outcome;
  const exchange = outcome.kind === "gone" ? outcome.exchange : undefined;
  return { errorCode: exchange?.errorCode ?? "unknown", error: exchange?.error ?? "unknown error" };
}
