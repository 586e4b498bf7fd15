import type { DisabledReason, SubscriptionStatus } from "./states.ts";

/** At most `limit` sends in each `perSeconds`, over all replicas. */
export interface RateLimit {
  readonly limit: number;
  readonly perSeconds: number;
}

/** The reference subscription: an endpoint with its secret in the clear, as the delivery engine needs it. */
export interface Subscription {
  readonly id: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly ownerId?: string;
  readonly url: string;
  readonly secret: string;
  /** Empty = every type. */
  readonly eventTypes: readonly string[];
  readonly active: boolean;
}

/** A subscription as management shows it: no secret. */
export interface SubscriptionRecord {
  readonly id: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly ownerId?: string;
  readonly url: string;
  readonly eventTypes: readonly string[];
  /** Selected fields; absent = the type's default set. */
  readonly fields?: readonly string[];
  /** Names only: values may be credentials. */
  readonly headerNames: readonly string[];
  readonly status: SubscriptionStatus;
  readonly statusReason?: DisabledReason;
  readonly description?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly externalId?: string;
  readonly rateLimit?: RateLimit;
  readonly maxInFlight?: number;
  readonly ordering: "none" | "subject";
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** What the store needs to make one. The caller has checked it and given the id and the secret. */
export interface NewSubscription
  extends Omit<SubscriptionRecord, "status" | "statusReason" | "createdAt" | "updatedAt" | "headerNames"> {
  readonly secret: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Changes to a subscription: undefined = leave, null = remove. A url or headers make a new endpoint version. */
export interface SubscriptionPatch {
  readonly url?: string;
  readonly eventTypes?: readonly string[];
  readonly fields?: readonly string[] | null;
  readonly headers?: Readonly<Record<string, string>> | null;
  readonly description?: string | null;
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly externalId?: string | null;
  readonly rateLimit?: RateLimit | null;
  readonly maxInFlight?: number | null;
  readonly ordering?: "none" | "subject";
}

/** A signing secret of an endpoint version. */
export interface EndpointSecret {
  readonly secret: string;
  /** Absent = does not expire. */
  readonly expiresAt?: Date;
}
