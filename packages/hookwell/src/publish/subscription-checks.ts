import { InvalidIdentifierError, ValidationError } from "../model/errors.ts";
import { checkName, checkTypeFilter } from "../model/identifiers.ts";
import { subscriptionLimits } from "../model/subscription.ts";
import type { AddressGuard } from "../send/address-guard.ts";
import { checkHeaders } from "../send/custom-headers.ts";
import { checkUrl } from "../send/endpoint-url.ts";
import type { WireOptions } from "../send/wire.ts";
import { checkAll, checkText, checkWhole } from "./checks.ts";
import type { SubscriptionChanges } from "./surface.ts";

const most = {
  entries: 100,
  description: 1_000,
  metadataKeys: subscriptionLimits.metadataKeys,
  metadataKey: 100,
  metadataValue: 1_000,
};

/** What an endpoint is checked against. */
export interface EndpointRules {
  readonly guard: AddressGuard;
  readonly wire: WireOptions | undefined;
}

/**
 * Checks what can be said of an endpoint, at its making and at a change, and answers it in the form to store.
 * Null (remove) is allowed where {@link SubscriptionChanges} allows it.
 * @throws ValidationError with every problem, BlockedAddressError
 */
export function checkedChanges<Changes extends SubscriptionChanges>(
  changes: Changes,
  network: EndpointRules,
  more: readonly (() => void)[] = [],
): Changes {
  let url: string | undefined;
  const when =
    <T>(value: T | null | undefined, check: (value: T) => void) =>
    (): void => {
      if (value !== undefined && value !== null) check(value);
    };
  checkAll([
    ...more,
    () => {
      for (const name of ["url", "eventTypes", "ordering"] as const)
        if (changes[name] === null) throw new InvalidIdentifierError(name, "cannot be removed");
    },
    when(changes.url, (given) => {
      url = checkUrl(given, network.guard);
    }),
    when(changes.headers, (headers) => checkHeaders(headers, network.wire)),
    when(changes.eventTypes, (types) =>
      checkList(types, "eventTypes", (entry, field) => checkTypeFilter(entry, field)),
    ),
    when(changes.fields, (fields) => checkList(fields, "fields", checkName)),
    when(changes.description, (text) => checkText(text, "description", most.description)),
    when(changes.metadata, checkMetadata),
    when(changes.merge?.metadata, checkMergedMetadata),
    when(changes.merge?.headers, (headers) => checkMergedHeaders(headers, network.wire)),
    when(changes.merge?.rateLimit, (rate) => {
      if (rate.limit !== undefined) checkWhole(rate.limit, "rateLimit/limit", 1, 1_000_000);
      if (rate.perSeconds !== undefined) checkWhole(rate.perSeconds, "rateLimit/perSeconds", 1, 86_400);
    }),
    when(changes.externalId, (id) => checkName(id, "externalId")),
    when(changes.rateLimit, (rate) => {
      checkWhole(rate.limit, "rateLimit/limit", 1, 1_000_000);
      checkWhole(rate.perSeconds, "rateLimit/perSeconds", 1, 86_400);
    }),
    when(changes.maxInFlight, (count) => checkWhole(count, "maxInFlight", 1, 1_000)),
    when(changes.ordering, (ordering) => {
      if (ordering !== "none" && ordering !== "subject")
        throw new InvalidIdentifierError("ordering", 'must be "none" or "subject"');
    }),
  ]);
  return {
    ...changes,
    ...(url !== undefined && { url }),
    ...(changes.eventTypes && { eventTypes: [...new Set(changes.eventTypes)] }),
  };
}

function checkList(list: unknown, field: string, check: (entry: unknown, field: string) => void): void {
  if (!Array.isArray(list)) throw new InvalidIdentifierError(field, "must be a list");
  if (list.length > most.entries)
    throw new InvalidIdentifierError(field, `must have at most ${most.entries} entries`);
  list.forEach((entry: unknown, index) => {
    check(entry, `${field}/${index}`);
  });
}

function checkMetadata(metadata: unknown): void {
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw new InvalidIdentifierError("metadata", "must be an object of texts");
  const entries = Object.entries(metadata);
  if (entries.length > most.metadataKeys)
    throw new InvalidIdentifierError("metadata", `must have at most ${most.metadataKeys} keys`);
  for (const [key, value] of entries) {
    if (key === "")
      throw new ValidationError([{ pointer: "/metadata", message: "must not have an empty key" }]);
    checkText(key, "metadata", most.metadataKey);
    checkText(value, `metadata/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, most.metadataValue);
  }
}

/** The entries that a merge sets, as if they were all; that the whole is not too much is for the store to see. */
function checkMergedMetadata(entries: Readonly<Record<string, string | null>>): void {
  checkMetadata(withoutNull(entries));
}

function checkMergedHeaders(
  entries: Readonly<Record<string, string | null>>,
  wire: WireOptions | undefined,
): void {
  checkHeaders(withoutNull(entries), wire);
}

function withoutNull(entries: unknown): unknown {
  if (typeof entries !== "object" || entries === null || Array.isArray(entries)) return entries;
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== null));
}
