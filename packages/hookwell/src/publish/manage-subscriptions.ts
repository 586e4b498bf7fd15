import type { Catalogue } from "../model/definition.ts";
import { InvalidIdentifierError, NotFoundError, ValidationError } from "../model/errors.ts";
import { checkName } from "../model/identifiers.ts";
import type { IdFunc, RandomBytes } from "../model/ids.ts";
import { coveringFilters } from "../model/matching.ts";
import type { DisabledReason, SubscriptionStatus } from "../model/states.ts";
import type { NewSubscription } from "../model/subscription.ts";
import { checkSecret, generateSecret } from "../send/signatures.ts";
import type { OutboxStore } from "../store/contract.ts";
import { checkAll, checkedPage, checkWhole } from "./checks.ts";
import type { TenantMode } from "./prepare-event.ts";
import type { Scopes } from "./scope.ts";
import { checkedChanges, type EndpointRules } from "./subscription-checks.ts";
import type {
  SecretRotationOptions,
  SubscriptionInput,
  Subscriptions,
  SubscriptionWriteOptions,
  TestSend,
  TestSendOptions,
} from "./surface.ts";

export interface SubscriptionParts {
  readonly store: OutboxStore;
  readonly scopes: Scopes;
  readonly endpoints: EndpointRules;
  readonly project: string | undefined;
  readonly tenants: TenantMode;
  readonly catalogue: Catalogue | undefined;
  readonly random: RandomBytes;
  readonly subscriptionId: IdFunc;
  readonly wake: () => void;
  readonly sendTest: (id: string, options: TestSendOptions) => Promise<TestSend>;
  /** Pending rows of a deleted subscription wait for maintenance. */
  readonly maintainSoon: () => void;
}

export function manageSubscriptions<Tx>(parts: SubscriptionParts): Subscriptions<Tx> {
  const { store, scopes, endpoints, random, subscriptionId, wake } = parts;

  const moveTo =
    (status: SubscriptionStatus, more: { from?: SubscriptionStatus; reason?: DisabledReason } = {}) =>
    async (id: string, options: SubscriptionWriteOptions<Tx> = {}) => {
      const { tx = "own", visibility = {}, ifVersion } = options;
      const guard = { ...(more.from && { from: more.from }), ...guardOf(ifVersion) };
      const scope = scopes.forAsync(tx);
      const record = await store.setSubscriptionStatus(scope, id, status, more.reason, visibility, guard);
      if (status === "active") wake();
      return record;
    };
  const remove = moveTo("deleted");

  return {
    async create(input, { tx = "own", visibility = {} } = {}) {
      const scope = scopes.forAsync(tx);
      const given = { ...input, projectId: input.projectId ?? visibility.projectId ?? parts.project };
      const checked = checkedChanges(given, endpoints, [
        () => {
          if (given.url === undefined || given.url === null)
            throw new InvalidIdentifierError("url", "is required");
        },
        () => checkName(given.projectId, "projectId"),
        () => given.tenantId === undefined || checkName(given.tenantId, "tenantId"),
        () => given.ownerId === undefined || checkName(given.ownerId, "ownerId"),
        () => given.secret === undefined || checkSecret(given.secret),
        () => checkTenant(parts, given),
        () => {
          for (const name of ["projectId", "tenantId", "ownerId"] as const)
            if (visibility[name] !== undefined && visibility[name] !== given[name])
              throw new InvalidIdentifierError(name, "must be your own");
        },
      ]);
      const secret = given.secret ?? generateSecret(random);
      const record = await store.createSubscription(
        scope,
        newSubscription(subscriptionId(), secret, checked),
      );
      return { ...record, secret };
    },
    async get(id, visibility = {}) {
      const record = await store.getSubscription(id, visibility);
      if (!record) throw new NotFoundError("subscription", id);
      return record;
    },
    list: async (filter = {}, page) => store.listSubscriptions(filter, checkedPage(page)),
    async update(id, changes, { tx = "own", visibility = {}, ifVersion } = {}) {
      const scope = scopes.forAsync(tx);
      const { url, eventTypes, fields, headers, description, metadata } = checkedChanges(changes, endpoints);
      const { externalId, rateLimit, maxInFlight, ordering, merge } = changes;
      const patch = { url, eventTypes, fields, headers, description, metadata };
      const record = await store.updateSubscription(
        scope,
        id,
        givenOnly({ ...patch, externalId, rateLimit, maxInFlight, ordering, merge }),
        visibility,
        guardOf(ifVersion),
      );
      wake();
      return record;
    },
    pause: moveTo("paused"),
    resume: moveTo("active", { from: "paused" }),
    disable: moveTo("disabled", { reason: "by_hand" }),
    enable: moveTo("active", { from: "disabled" }),
    async rotateSecret(id, rotation = {}, { tx = "own", visibility = {} } = {}) {
      const scope = scopes.forAsync(tx);
      const { overlapMs, secret } = checkedRotation(rotation, random);
      const record = await store.rotateSecret(scope, id, { overlapMs, secret }, visibility);
      return { ...record, secret };
    },
    test: (id, options = {}) => parts.sendTest(id, options),
    async delete(id, options) {
      await remove(id, options);
      parts.maintainSoon();
    },
  };
}

function guardOf(ifVersion: string | readonly string[] | undefined): { versions?: readonly string[] } {
  if (ifVersion === undefined) return {};
  return { versions: typeof ifVersion === "string" ? [ifVersion] : ifVersion };
}

const defaultOverlapMs = 24 * 3_600_000;
const longestOverlapMs = 30 * 24 * 3_600_000;

/** @throws ValidationError */
function checkedRotation(
  { overlapMs, secret }: SecretRotationOptions,
  random: RandomBytes,
): Required<SecretRotationOptions> {
  checkAll([
    () => overlapMs === undefined || checkWhole(overlapMs, "overlapMs", 0, longestOverlapMs),
    () => secret === undefined || checkSecret(secret),
  ]);
  return { overlapMs: overlapMs ?? defaultOverlapMs, secret: secret ?? generateSecret(random) };
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
type Present<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Without the keys whose value is undefined. */
function givenOnly<T extends object>(values: T): Given<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;
}

/** Without the keys that say nothing: plain JavaScript may create with null. */
function presentOnly<T extends object>(values: T): Present<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value != null)) as Present<T>;
}

function newSubscription(id: string, secret: string, input: SubscriptionInput): NewSubscription {
  return {
    id,
    // Checked by the caller.
    projectId: input.projectId!,
    url: input.url,
    secret,
    eventTypes: input.eventTypes ?? [],
    ordering: input.ordering ?? "none",
    ...presentOnly({
      tenantId: input.tenantId,
      ownerId: input.ownerId,
      fields: input.fields,
      headers: input.headers,
      description: input.description,
      metadata: input.metadata,
      externalId: input.externalId,
      rateLimit: input.rateLimit,
      maxInFlight: input.maxInFlight,
    }),
  };
}

/**
 * Where tenants are required, a subscription without one would get the events of all: allowed only when every
 * type it takes is a broadcast type or one of Hookwell's own, which are about no tenant.
 */
function checkTenant(parts: SubscriptionParts, input: SubscriptionInput): void {
  if (parts.tenants === "optional" || input.tenantId !== undefined) return;
  const filters = Array.isArray(input.eventTypes) ? input.eventTypes : [];
  if (filters.length > 0 && filters.every((filter) => takesNoTenantData(parts.catalogue, filter))) return;
  throw new ValidationError([
    {
      pointer: "/tenantId",
      message: "is required here: without it the subscription would get the events of every tenant",
    },
  ]);
}

function takesNoTenantData(catalogue: Catalogue | undefined, filter: unknown): boolean {
  if (typeof filter !== "string") return false;
  if (filter.startsWith("hookwell.")) return true;
  const covered = [...(catalogue?.values() ?? [])].filter(({ type }) =>
    coveringFilters(type).includes(filter),
  );
  return covered.length > 0 && covered.every(({ broadcast }) => broadcast);
}
