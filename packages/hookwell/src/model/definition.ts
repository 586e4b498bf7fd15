import type { Actor } from "./event.ts";
import type { RetryPolicyInput } from "./retry.ts";

/** Which fields of the data a subscription may select. Names are keys of the data's top level. */
export interface FieldRules {
  /** In every body. */
  readonly always: readonly string[];
  /** In the body of a subscription that selects nothing (or only unknown names). */
  readonly default: readonly string[];
  /** Only when selected; `personal` marks personal data, which may never be in the default set. */
  readonly optional: Readonly<Record<string, { readonly personal?: boolean }>>;
}

/** The event as an envelope function sees it. */
export interface EnvelopeEvent {
  readonly id: string;
  readonly type: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly subject?: string;
  readonly revision?: number;
  readonly actor?: Actor;
  readonly occurredAt: Date;
}

/** What an enrichment is asked about. */
export interface EnrichEvent extends EnvelopeEvent {
  readonly data: unknown;
}

/** Only reads; answers by event id what to lay over the top level of the data. At most 2 s. */
export type Enrich = (
  events: readonly EnrichEvent[],
  options: { readonly signal: AbortSignal },
) => Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>>;

/** One event type, checked and resolved: what `defineEvents` makes of the application's words. */
export interface EventTypeDefinition {
  readonly type: string;
  readonly description?: string;
  /** Standard Schema validation; the output is what is stored. */
  readonly validate: (data: unknown) => ValidationResult | Promise<ValidationResult>;
  readonly jsonSchema: Readonly<Record<string, unknown>>;
  readonly subject?: (data: unknown) => string;
  readonly fields?: FieldRules;
  readonly enrich?: Enrich;
  /** Absent = the default envelope. */
  readonly envelope?: (event: EnvelopeEvent, data: unknown) => unknown;
  /** Absent = the worker's policy. */
  readonly retry?: RetryPolicyInput;
  readonly example?: unknown;
  readonly fanOut: "dispatch" | "emit";
  /** Allowed without a tenant where tenants are required. */
  readonly broadcast: boolean;
}

export type ValidationResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly { pointer: string; message: string }[] };

/** Event types by name. */
export type Catalogue = ReadonlyMap<string, EventTypeDefinition>;
