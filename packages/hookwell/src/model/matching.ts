import type { SubscriptionStatus } from "./states.ts";

/**
 * The filter entries that cover an event type: the type itself and each `prefix.*` of it. `hookwell.*` types
 * are covered only by entries that begin with `hookwell.`; every other type also by `""`, which stands for an
 * empty filter. A subscription matches when one of its entries is among them: the stores only test overlap.
 */
export function coveringFilters(type: string): string[] {
  const words = type.split(".");
  const filters = [type];
  for (let length = words.length - 1; length >= 1; length--)
    filters.push(`${words.slice(0, length).join(".")}.*`);
  if (words[0] !== "hookwell") filters.push("");
  return filters;
}

/** The filter entries a subscription is stored under: its list, or `""` when it takes every type. */
export function storedFilters(eventTypes: readonly string[]): readonly string[] {
  return eventTypes.length === 0 ? [""] : [...new Set(eventTypes)];
}

/** What matching needs to know of an event. */
export interface Matchable {
  readonly projectId: string;
  readonly tenantId?: string;
  /** Owner ids; absent = no audience. An empty list reaches nobody. */
  readonly audience?: readonly string[];
  /** {@link coveringFilters} of the type. */
  readonly filters: readonly string[];
  /** The type's own tenant mode: true for `hookwell.*`, which go to ownerless, tenantless subscriptions only. */
  readonly operational?: boolean;
}

/** What matching needs to know of an event that was captured. */
export function matchableOf(
  event: Pick<Matchable, "projectId" | "tenantId" | "audience"> & { readonly type: string },
): Matchable {
  const { projectId, tenantId, audience, type } = event;
  return {
    projectId,
    ...(tenantId !== undefined && { tenantId }),
    ...(audience !== undefined && { audience }),
    filters: coveringFilters(type),
    operational: isOperational(type),
  };
}

function isOperational(type: string): boolean {
  return type.startsWith("hookwell.");
}

/** Why a subscription does not match, by the rule that says so first. In the order in which they are looked at. */
export const mismatchRules = ["project", "type", "operational", "tenant", "owner", "status"] as const;
export type MismatchRule = (typeof mismatchRules)[number];

/** What matching needs to know of a subscription. Without a status it is taken for active. */
export interface MatchedSubscription {
  readonly projectId: string;
  readonly tenantId?: string;
  readonly ownerId?: string;
  readonly eventTypes: readonly string[];
  readonly status?: SubscriptionStatus;
}

/**
 * The rule. Project equal; one filter entry covers the type; operational events only to ownerless, tenantless ones;
 * tenants equal or either absent; with an audience the owner must be in it, without one only ownerless
 * subscriptions; active or paused. Undefined = it matches. The SQL stores say the same in SQL.
 */
export function mismatch(event: Matchable, subscription: MatchedSubscription): MismatchRule | undefined {
  const { tenantId, ownerId, status = "active" } = subscription;
  const entries = storedFilters(subscription.eventTypes);
  const fails: Readonly<Record<MismatchRule, boolean>> = {
    project: event.projectId !== subscription.projectId,
    type: !entries.some((entry) => event.filters.includes(entry)),
    operational: Boolean(event.operational && (tenantId || ownerId)),
    tenant: Boolean(event.tenantId && tenantId && event.tenantId !== tenantId && !event.operational),
    owner: event.audience ? !ownerId || !event.audience.includes(ownerId) : Boolean(ownerId),
    status: status !== "active" && status !== "paused",
  };
  return mismatchRules.find((rule) => fails[rule]);
}

export function matches(event: Matchable, subscription: MatchedSubscription): boolean {
  return mismatch(event, subscription) === undefined;
}
