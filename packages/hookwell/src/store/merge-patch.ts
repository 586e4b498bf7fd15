import { ValidationError } from "../model/errors.ts";
import {
  type SubscriptionPatch,
  type SubscriptionRecord,
  subscriptionLimits,
} from "../model/subscription.ts";

type Texts = Readonly<Record<string, string>>;

/** True when a change needs the header values as they are. */
export function opensEndpoint({ url, headers, merge }: SubscriptionPatch): boolean {
  return url !== undefined || headers !== undefined || merge?.headers !== undefined;
}

/**
 * The patch with its merges made on what the row holds: plain values, to be written in the same transaction.
 * `headers` is asked for only when {@link opensEndpoint}.
 * @throws ValidationError for what the whole may not be, although its parts may
 */
export function mergedPatch(
  patch: SubscriptionPatch,
  record: Pick<SubscriptionRecord, "metadata" | "rateLimit">,
  headers: () => Texts,
): Omit<SubscriptionPatch, "merge"> {
  const { merge, ...plain } = patch;
  if (!merge) return plain;
  return {
    ...plain,
    ...(merge.metadata && { metadata: mergedMetadata(plain.metadata ?? record.metadata, merge.metadata) }),
    ...(merge.headers && { headers: mergedHeaders(plain.headers ?? headers(), merge.headers) }),
    ...(merge.rateLimit && {
      rateLimit: mergedRate(plain.rateLimit ?? record.rateLimit, merge.rateLimit),
    }),
  };
}

function mergedMetadata(current: Texts = {}, changes: Readonly<Record<string, string | null>>): Texts {
  const metadata = mergedTexts(current, changes, (name) => name);
  if (Object.keys(metadata).length > subscriptionLimits.metadataKeys)
    throw invalid("/metadata", `must have at most ${subscriptionLimits.metadataKeys} keys`);
  return metadata;
}

function mergedHeaders(current: Texts, changes: Readonly<Record<string, string | null>>): Texts {
  const headers = mergedTexts(current, changes, (name) => name.toLowerCase());
  const entries = Object.entries(headers);
  if (entries.length > subscriptionLimits.headers)
    throw invalid("/headers", `must have at most ${subscriptionLimits.headers} entries`);
  if (entries.join("").length - entries.length > subscriptionLimits.headerCharacters)
    throw invalid("/headers", `must be at most ${subscriptionLimits.headerCharacters} characters together`);
  return headers;
}

function mergedTexts(
  current: Texts,
  changes: Readonly<Record<string, string | null>>,
  same: (name: string) => string,
): Texts {
  const entries = new Map(Object.entries(current).map(([name, value]) => [same(name), [name, value]]));
  for (const [name, value] of Object.entries(changes))
    if (value === null) entries.delete(same(name));
    else entries.set(same(name), [name, value]);
  return Object.fromEntries(entries.values()) as Texts;
}

function mergedRate(
  current: SubscriptionRecord["rateLimit"],
  changes: { readonly limit?: number; readonly perSeconds?: number },
): NonNullable<SubscriptionRecord["rateLimit"]> {
  const limit = changes.limit ?? current?.limit;
  const perSeconds = changes.perSeconds ?? current?.perSeconds;
  if (limit !== undefined && perSeconds !== undefined) return { limit, perSeconds };
  throw invalid(`/rateLimit/${limit === undefined ? "limit" : "perSeconds"}`, "is missing");
}

function invalid(pointer: string, message: string): ValidationError {
  return new ValidationError([{ pointer, message }]);
}
