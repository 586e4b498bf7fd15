import type { Clock } from "../model/clock.ts";
import { ValidationError } from "../model/errors.ts";
import type { HoldRecord, HoldSelector } from "../model/hold.ts";
import { checkName, checkTypeFilter } from "../model/identifiers.ts";
import type { IdFunc } from "../model/ids.ts";
import type { Timers } from "../model/timers.ts";
import type { Now, OutboxStore, Visibility } from "../store/contract.ts";
import { checkAll, checkText } from "./checks.ts";
import type { Scopes } from "./scope.ts";
import type { Holds } from "./surface.ts";

/** Deliveries given back in one transaction. */
const batch = 1_000;
const mostCounted = 10_000;
/** Others have the rows that are left in their hands. */
const lockedMs = 50;
const mostText = 1_000;

export function manageHolds<Tx>(parts: {
  readonly store: OutboxStore;
  readonly scopes: Scopes;
  readonly clock: Clock;
  readonly now: () => Now;
  readonly timers: Timers;
  readonly holdId: IdFunc;
  readonly wake: () => void;
  readonly maintainSoon: () => void;
}): Holds<Tx> {
  const { store, scopes, clock, now, wake } = parts;

  /** What a release set free may be due now, here and in other processes. */
  const tell = (): void => {
    wake();
    store.notify();
  };

  const giveBack: Holds<Tx>["giveBack"] = async ({ onBatch, patienceMs } = {}) => {
    const until = patienceMs === undefined ? Number.POSITIVE_INFINITY : clock().getTime() + patienceMs;
    let deliveries = 0;
    for (;;) {
      const done = await store.giveBackHeld(batch, now());
      deliveries += done.deliveries;
      if (done.deliveries > 0) tell();
      if (!done.more) return { deliveries, left: 0 };
      onBatch?.(deliveries);
      if (clock().getTime() >= until) break;
      if (done.deliveries === 0) await parts.timers.sleep(lockedMs);
    }
    const left = await store.countToGiveBack(mostCounted);
    if (left > 0) parts.maintainSoon();
    return { deliveries, left };
  };

  return {
    list: (visibility = {}) => store.listHolds(visibility),
    async set(selector, { reason, heldBy, tx = "own", visibility = {} } = {}) {
      const scope = scopes.forAsync(tx);
      const checked = checkedSelector(selector);
      checkAll([
        () => reason === undefined || checkText(reason, "reason", mostText),
        () => heldBy === undefined || checkText(heldBy, "heldBy", mostText),
        () => demandOwn(checked, visibility),
      ]);
      return store.setHold(
        scope,
        {
          id: parts.holdId(),
          selector: checked,
          ...(reason !== undefined && { reason }),
          ...(heldBy !== undefined && { heldBy }),
        },
        now(),
      );
    },
    async release(which, { tx = "own", visibility = {}, patienceMs = 1_000 } = {}) {
      const scope = scopes.forAsync(tx);
      const wanted = "id" in which ? which : checkedSelector(which);
      const hold = (await isVisible(store, wanted, visibility))
        ? await store.releaseHold(scope, wanted)
        : undefined;
      if (!hold) return undefined;
      if (tx !== "own") return { hold, left: await store.countToGiveBack(mostCounted) };
      tell();
      return { hold, left: (await giveBack({ patienceMs })).left };
    },
    giveBack,
  };
}

/** @throws ValidationError unless it is one of the three, well-formed */
function checkedSelector(selector: HoldSelector): HoldSelector {
  const given: { readonly all?: unknown; readonly projectId?: unknown; readonly type?: unknown } = selector;
  const { all, projectId, type } = given;
  if ([all, projectId, type].filter((part) => part !== undefined).length !== 1)
    throw new ValidationError([{ pointer: "", message: "must have one of all, projectId and type" }]);
  if (projectId !== undefined) {
    checkName(projectId, "projectId");
    return { projectId };
  }
  if (type !== undefined) {
    checkTypeFilter(type, "type");
    return { type };
  }
  if (all !== true) throw new ValidationError([{ pointer: "/all", message: "must be true" }]);
  return { all };
}

/** Whoever is bound to a project holds that alone; whoever is bound to a tenant or owner holds nothing. */
function demandOwn(selector: HoldSelector, visibility: Visibility): void {
  if (!isOwn(selector, visibility))
    throw new ValidationError([{ pointer: "", message: "must be your own project, and nothing wider" }]);
}

function isOwn(selector: HoldSelector, { projectId, tenantId, ownerId }: Visibility): boolean {
  if (tenantId !== undefined || ownerId !== undefined) return false;
  return projectId === undefined || ("projectId" in selector && selector.projectId === projectId);
}

async function isVisible(
  store: OutboxStore,
  which: HoldSelector | { readonly id: string },
  visibility: Visibility,
): Promise<boolean> {
  if (!("id" in which)) return isOwn(which, visibility);
  if (isOwn({ all: true }, visibility)) return true;
  const holds: readonly HoldRecord[] = await store.listHolds(visibility);
  return holds.some(({ id, selector }) => id === which.id && isOwn(selector, visibility));
}
