import type { Clock } from "../model/clock.ts";
import type { RandomBytes } from "../model/ids.ts";
import type { BreakerPolicy, DisablePolicy } from "../model/lane-policy.ts";
import type { Logger, Observer } from "../model/observe.ts";
import type { Random } from "../model/random.ts";
import type { RetryPolicyInput } from "../model/retry.ts";
import type { Timers } from "../model/timers.ts";
import type { NetworkOptions } from "../send/address-guard.ts";
import type { SendLimits } from "../send/http-sender.ts";
import type { Sender } from "../send/sender.ts";
import type { WireOptions } from "../send/wire.ts";
import type { OutboxStore } from "../store/contract.ts";
import type { EventSet, EventShapes } from "./define-events.ts";
import type { AnyAdapter } from "./hookwell.ts";
import type { TenantMode } from "./prepare-event.ts";
import type { Retention } from "./surface.ts";

/** What happens to endpoints that fail. `false` switches a part off. */
export interface LaneOptions {
  /** Default: opens after 10 failures in a row; probes after 5 s, doubling to 5 min. */
  readonly breaker?: false | Partial<BreakerPolicy>;
  /** Default: after 20 failed attempts in a row over at least five days. */
  readonly disable?: false | Partial<DisablePolicy>;
}

/** What `createHookwell` takes. The application, the server and the CLI share one instance's options. */
export interface HookwellOptions<
  Adapter extends AnyAdapter,
  Shapes extends EventShapes,
  Tenants extends TenantMode,
> {
  /** Where events and deliveries live: `postgresStore()`, `sqliteStore()`, or `new MemoryOutbox()`. */
  readonly store: OutboxStore;
  /** What this application's transactions look like: `pgTx()`, `kysely()`, `nodeSqlite()`, `betterSqlite3()`. */
  readonly tx?: Adapter;
  /** Project of everything emitted or created without one. */
  readonly project?: string;
  /** "required": no event or subscription without a tenant, but for broadcast types. Default "optional". */
  readonly tenants?: Tenants;
  /** `defineEvents({…})`. Absent = every well-formed type is accepted as it comes. */
  readonly events?: EventSet<Shapes>;
  /** Where webhooks may go besides public addresses over https. */
  readonly network?: NetworkOptions;
  /** Renames or drops headers, for products that show their own name. */
  readonly wire?: WireOptions;
  /** Bounds of one exchange. */
  readonly limits?: SendLimits;
  /** For event types without their own. Default: 8 attempts over about a day. */
  readonly retry?: RetryPolicyInput;
  /** Circuit breaker and disabling of endpoints that only fail. Fields left out keep their default. */
  readonly lanes?: LaneOptions;
  /** Default: delivered and cancelled 30 days, failed 90, events 30; `false` prunes nothing. */
  readonly retention?: Retention;
  /**
   * `subscriptions`: how many have a label of their own in the metrics, the first that are met; the rest is "other".
   * Default 0 = none, at most 10,000.
   */
  readonly metrics?: { readonly subscriptions?: number };
  /** Told of what goes wrong. Default: the console. */
  readonly logger?: Logger;
  /** Told of everything (docs/reference/observability.md). */
  readonly observe?: Observer;
  /** Default: the wall clock here, the database's clock in the store. A given one is used for both. */
  readonly clock?: Clock;
  readonly random?: RandomBytes;
  /** For jitter. */
  readonly randomNumber?: Random;
  readonly timers?: Timers;
  /** A steady clock in ms, for what is left of a lease. Default: the runtime's. */
  readonly monotonic?: () => number;
  /** Default: HTTP with the options above. */
  readonly sender?: Sender;
}
