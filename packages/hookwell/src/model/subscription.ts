import { hash } from "node:crypto";
import { canonicalJson } from "./json.ts";
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
  /** Names this content, secrets and header values included: equal when nothing is different. Opaque. */
  readonly version: string;
}

/** {@link SubscriptionRecord.version}: a digest, so that no writer can forget to raise it. */
export function subscriptionVersion(
  record: Omit<SubscriptionRecord, "version">,
  /** The endpoint version stands for what the record does not show: it is another one after each change of it. */
  endpointId: string,
): string {
  const content = canonicalJson({ ...record, endpointId });
  return hash("sha256", content, "base64url").slice(0, 22);
}

/** Most that a subscription may hold, also when it grew by merging. */
export const subscriptionLimits = {
  metadataKeys: 50,
  headers: 32,
  /** Names and values together. */
  headerCharacters: 8_192,
} as const;

/** What the store needs to make one. The caller has checked it and given the id and the secret. */
export interface NewSubscription
  extends Omit<
    SubscriptionRecord,
    "status" | "statusReason" | "createdAt" | "updatedAt" | "headerNames" | "version"
  > {
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
  /** Applied to what the row holds in the transaction of the change, so that two changes of it both stay. */
  readonly merge?: SubscriptionMerge;
}

/** Changes inside a field, by the rules of JSON merge-patch (RFC 7396): null removes an entry, the others stay. */
export interface SubscriptionMerge {
  readonly metadata?: Readonly<Record<string, string | null>>;
  /** Names in any case: `x-key` replaces `X-Key`. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly rateLimit?: Partial<RateLimit>;
}

/** A signing secret of an endpoint version. */
export interface EndpointSecret {
  readonly secret: string;
  /** Absent = does not expire. */
  readonly expiresAt?: Date;
}
