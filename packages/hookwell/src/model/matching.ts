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

/**
 * Project equal; tenants equal or either absent; with an audience the owner must be in it; without one only
 * ownerless subscriptions; one filter entry covers the type. The memory store calls this, the SQL stores say
 * the same in SQL.
 */
export function matches(
  event: Matchable,
  subscription: {
    readonly projectId: string;
    readonly tenantId?: string;
    readonly ownerId?: string;
    readonly eventTypes: readonly string[];
  },
): boolean {
  const { tenantId, ownerId } = subscription;
  if (event.projectId !== subscription.projectId) return false;
  if (event.operational) {
    if (tenantId || ownerId) return false;
  } else if (event.tenantId && tenantId && event.tenantId !== tenantId) return false;
  if (event.audience ? !ownerId || !event.audience.includes(ownerId) : ownerId) return false;
  return storedFilters(subscription.eventTypes).some((entry) => event.filters.includes(entry));
}
