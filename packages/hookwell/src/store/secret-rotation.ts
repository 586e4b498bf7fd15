import { TooManySecretsError } from "../model/errors.ts";
import type { EndpointSecret, SubscriptionRecord } from "../model/subscription.ts";
import type { Now, Scope, Visibility } from "./contract.ts";

/** Most secrets of a subscription that are valid at once. */
export const mostSecrets = 5;

export interface SecretRotation {
  /** Checked by the caller. One that is valid already is moved to the front. */
  readonly secret: string;
  /** Milliseconds that the others stay valid at most; 0 ends them now. */
  readonly overlapMs: number;
}

/** Where the webhooks of a subscription go now, and what signs them, in the clear. */
export interface OpenEndpoint {
  readonly subscription: SubscriptionRecord;
  readonly headers: Readonly<Record<string, string>>;
  /** Every secret that is valid, the one for new deliveries first. */
  readonly secrets: readonly string[];
}

/** Signing secrets of subscriptions: part of the store contract. */
export interface SecretStore {
  /**
   * A new endpoint version, which every older one points at, with `secret` as its first: new deliveries are bound to
   * it, and it signs every attempt from now on, those of pending deliveries too. The others stay as long as
   * `overlapMs` says, or as their own end says when that is sooner.
   * @throws NotFoundError, InvalidStateError (deleted), TooManySecretsError
   */
  rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord>;
  /** The endpoint of a subscription, whatever its status: for a send without a delivery. @throws EncryptionKeyError */
  openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined>;
}

/** The secrets that are valid at `now`, in their order. */
export function validSecrets(secrets: readonly EndpointSecret[], now: number): string[] {
  return secrets
    .filter(({ expiresAt }) => expiresAt === undefined || expiresAt.getTime() > now)
    .map(({ secret }) => secret);
}

/**
 * The secrets of a subscription after a rotation at `now`, those that have ended left out.
 * @throws TooManySecretsError
 */
export function rotated(
  id: string,
  secrets: readonly EndpointSecret[],
  { secret, overlapMs }: SecretRotation,
  now: number,
): EndpointSecret[] {
  const end = now + overlapMs;
  const others = secrets
    .filter((known) => known.secret !== secret)
    .map((known) => ({
      secret: known.secret,
      expiresAt: new Date(Math.min(known.expiresAt?.getTime() ?? end, end)),
    }))
    .filter(({ expiresAt }) => expiresAt.getTime() > now);
  if (others.length < mostSecrets) return [{ secret }, ...others];
  const ends = secrets
    .flatMap(({ expiresAt }) => (expiresAt ? [expiresAt.getTime()] : []))
    .filter((time) => time > now);
  throw new TooManySecretsError(id, mostSecrets, new Date(Math.min(...ends)));
}
