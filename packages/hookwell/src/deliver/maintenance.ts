import type { Clock } from "../model/clock.ts";
import type { Observer } from "../model/observe.ts";
import type { MaintenanceResult, OutboxStore, RetentionPolicy } from "../store/contract.ts";
import { type FailureHook, reportFailed } from "./failure-hook.ts";

export interface MaintenanceConfig {
  readonly store: Pick<OutboxStore, "maintain">;
  /** Null = nothing is pruned. */
  readonly retention: RetentionPolicy | null;
  readonly clock: Clock;
  /** True = the clock above stands in for the store's. */
  readonly virtualTime?: boolean | undefined;
  readonly observe: Observer;
  readonly failureHook?: FailureHook | undefined;
}

/** One batch of upkeep, and what is to be told of it. */
export async function maintainOnce(config: MaintenanceConfig, limit: number): Promise<MaintenanceResult> {
  const { store, retention, clock, virtualTime, observe } = config;
  const done = await store.maintain(retention, limit, virtualTime ? clock() : null);
  if (done.cancelled > 0) observe("cancelled", { deliveries: done.cancelled });
  if (done.prunedDeliveries > 0 || done.prunedEvents > 0)
    observe("pruned", { deliveries: done.prunedDeliveries, events: done.prunedEvents });
  for (const delivery of done.failed)
    reportFailed({ lastError: "subscription disabled", ...delivery }, "held_too_long", config);
  return done;
}
