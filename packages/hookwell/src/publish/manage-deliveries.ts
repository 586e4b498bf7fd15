import { NotFoundError, ValidationError } from "../model/errors.ts";
import type { DeliverySelection } from "../model/replay.ts";
import type { Timers } from "../model/timers.ts";
import type { Now, OutboxStore, TimeRange } from "../store/contract.ts";
import { checkedPage } from "./checks.ts";
import { checkSelection, seenSelection } from "./delivery-selection.ts";
import type { Scopes } from "./scope.ts";
import type { Deliveries } from "./surface.ts";

/** Pending rows that one statement of a bulk cancel looks at. */
const lookPerWindow = 1_000;
const mostPasses = 4;

export function manageDeliveries<Tx>(parts: {
  readonly store: OutboxStore;
  readonly scopes: Scopes;
  readonly now: () => Now;
  readonly timers: Timers;
  readonly wake: () => void;
}): Deliveries<Tx> {
  const { store, scopes, now, timers, wake } = parts;

  /** Once along all pending rows that it may be about, a window at a time; `told` hears of each. */
  async function pass(
    selection: DeliverySelection,
    period: TimeRange,
    dryRun: boolean,
    { signal, told }: { readonly signal: AbortSignal | undefined; readonly told: (count: number) => void },
  ): Promise<number> {
    let count = 0;
    for (let after: Awaited<ReturnType<typeof store.replays.cancelWindow>>["next"]; ; ) {
      const options = { look: lookPerWindow, dryRun };
      const window = await store.replays.cancelWindow(selection, period, after, options, now());
      count += window.count;
      told(window.count);
      after = window.next;
      if (!after || signal?.aborted) return count;
      await timers.sleep(0);
    }
  }

  return {
    async get(id, visibility = {}) {
      const delivery = await store.getDelivery(id, visibility);
      if (!delivery) throw new NotFoundError("delivery", id);
      return delivery;
    },
    list: async (filter = {}, page) => store.listDeliveries(filter, checkedPage(page)),
    async retry(id, { tx = "own", visibility = {} } = {}) {
      const delivery = await store.retryDelivery(scopes.forAsync(tx), id, visibility, now());
      wake();
      return delivery;
    },
    cancel: async (id, { tx = "own", visibility = {} } = {}) =>
      store.cancelDelivery(scopes.forAsync(tx), id, visibility, now()),
    async cancelMany(
      { since, until, ...given },
      { visibility = {}, dryRun = false, signal, onProgress } = {},
    ) {
      checkSelection(given, "", since !== undefined || until !== undefined);
      for (const [field, time] of Object.entries({ since, until }))
        if (time !== undefined && !(time instanceof Date && !Number.isNaN(time.getTime())))
          throw new ValidationError([{ pointer: `/${field}`, message: "must be a time" }]);
      const selection = seenSelection(given, visibility, "");
      const period = { ...(since && { since }), ...(until && { until }) };
      let soFar = 0;
      const told = (more: number): void => {
        soFar += more;
        onProgress?.(soFar);
      };
      let count = await pass(selection, period, dryRun, { signal, told });
      // Rows that were in somebody's hands, or moved along their lane meanwhile, are found by going again.
      for (let more = count, turn = 1; !dryRun && more > 0 && turn < mostPasses; turn++) {
        if (signal?.aborted) break;
        more = await pass(selection, period, dryRun, { signal, told });
        count += more;
      }
      if (count > 0 && !dryRun) wake();
      return { count };
    },
  };
}
