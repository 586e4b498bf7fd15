import type { AttemptRecord } from "../model/delivery.ts";
import type { RateLimit, SubscriptionMerge, SubscriptionRecord } from "../model/subscription.ts";
import type { Page, PageOf, SubscriptionFilter, Visibility } from "../store/contract.ts";
import type { WriteOptions } from "./write-options.ts";

export interface SubscriptionInput {
  readonly projectId?: string;
  readonly tenantId?: string;
  readonly ownerId?: string;
  readonly url: string;
  readonly eventTypes?: readonly string[];
  readonly fields?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly description?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly externalId?: string;
  /** `whsec_` + base64 of 24 to 64 bytes, or plain text. Absent = 32 random bytes. */
  readonly secret?: string;
  readonly rateLimit?: RateLimit;
  readonly maxInFlight?: number;
  readonly ordering?: "none" | "subject";
}

export interface SubscriptionChanges {
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
  /** Changes inside metadata, headers and rate limit: null removes an entry, the others stay. */
  readonly merge?: SubscriptionMerge;
}

/** A change that is made only if nobody made another meanwhile. */
export interface SubscriptionWriteOptions<Tx> extends WriteOptions<Tx> {
  /** `version` of the record that the change is based on; a list = any of them. @throws VersionConflictError */
  readonly ifVersion?: string | readonly string[];
}

export interface SecretRotationOptions {
  /** Milliseconds that the older secrets stay valid at most, 0 to 30 days; 0 ends them now. Default: 24 hours. */
  readonly overlapMs?: number;
  /**
   * `whsec_` + base64 of 24 to 64 bytes, or plain text. Absent = 32 random bytes. One that is valid already is made
   * the first again, so a rotation to a given secret can be repeated.
   */
  readonly secret?: string;
}

export interface TestSendOptions {
  /**
   * Its example is sent. Absent = the first type of the catalogue that the subscription takes and that has an example,
   * or, when there is none, `hookwell.test`.
   */
  readonly eventType?: string;
  /** Whom it is made for: a subscription of another project, tenant or owner answers "not found". */
  readonly visibility?: Visibility;
}

/** How a test send went. */
export interface TestSend {
  readonly eventId: string;
  readonly eventType: string;
  /** `errorCode` is absent when the receiver answered 2xx. */
  readonly attempt: AttemptRecord;
}

export interface Subscriptions<Tx> {
  /** The secret is in the answer, and nowhere else, ever again. */
  create(
    input: SubscriptionInput,
    options?: WriteOptions<Tx>,
  ): Promise<SubscriptionRecord & { readonly secret: string }>;
  get(id: string, visibility?: Visibility): Promise<SubscriptionRecord>;
  list(filter?: SubscriptionFilter, page?: Partial<Page>): Promise<PageOf<SubscriptionRecord>>;
  update(
    id: string,
    changes: SubscriptionChanges,
    options?: SubscriptionWriteOptions<Tx>,
  ): Promise<SubscriptionRecord>;
  pause(id: string, options?: SubscriptionWriteOptions<Tx>): Promise<SubscriptionRecord>;
  /** Of a paused one. @throws InvalidStateError for a disabled one: it is enabled instead */
  resume(id: string, options?: SubscriptionWriteOptions<Tx>): Promise<SubscriptionRecord>;
  disable(id: string, options?: SubscriptionWriteOptions<Tx>): Promise<SubscriptionRecord>;
  /** Of a disabled one. @throws InvalidStateError for a paused one: it is resumed instead */
  enable(id: string, options?: SubscriptionWriteOptions<Tx>): Promise<SubscriptionRecord>;
  /**
   * Gives the endpoint a new secret. Every attempt from now on, those of pending deliveries too, is signed with each
   * secret that is valid then; the older ones end by themselves after the overlap. The secret is in the answer, and
   * nowhere else, ever again.
   * @throws NotFoundError, InvalidStateError when it is deleted, TooManySecretsError when five are valid already
   */
  rotateSecret(
    id: string,
    rotation?: SecretRotationOptions,
    options?: WriteOptions<Tx>,
  ): Promise<SubscriptionRecord & { readonly secret: string }>;
  /**
   * Sends the example of an event type to the endpoint, once, with the header `x-hookwell-test: true`, signed like any
   * other webhook. Nothing is stored and nothing counts: no delivery, no retry, no failure of the endpoint, and a 410
   * disables nothing. It does not wait for a pause, a rate limit or an open circuit; a disabled subscription is tested
   * too, so that one can see whether to enable it. Resolves with the attempt, also when that failed; at the latest at
   * the time limit of an exchange (15 s).
   * @throws NotFoundError; InvalidStateError when it is deleted; UnknownEventTypeError; NoExampleError when the named
   * type has none; SendAbortedError when the instance is closed meanwhile
   */
  test(id: string, options?: TestSendOptions): Promise<TestSend>;
  delete(id: string, options?: SubscriptionWriteOptions<Tx>): Promise<void>;
}
