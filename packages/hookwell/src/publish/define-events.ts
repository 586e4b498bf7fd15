import type { Catalogue, EnrichEvent, EnvelopeEvent, EventTypeDefinition } from "../model/definition.ts";
import type { RetryPolicyInput } from "../model/retry.ts";
import { checkedDefinition } from "./definition-checks.ts";
import type { InputOf, OutputOf, StandardSchema, WithJsonSchema } from "./standard-schema.ts";

/** For the compiler: by type, the data that `emit` takes and whether a tenant may be left out. */
export interface EventShapes {
  readonly [type: string]: { readonly data: unknown; readonly broadcast: boolean };
}

/** What `defineEvents` gives and `createHookwell({ events })` takes. */
export interface EventSet<Shapes extends EventShapes = EventShapes> {
  readonly catalogue: Catalogue;
  /** Never there at run time. */
  readonly shapes?: Shapes;
}

type NamesOf<Data> = Data extends unknown ? keyof Data & string : never;

/** One event type in the application's words. */
export type EventDefinition<Schema extends StandardSchema> = {
  readonly description?: string;
  /** Any Standard Schema (zod, valibot, arktype). Its output is what is stored and sent. */
  readonly schema: Schema;
  /** What the event is about, such as `user:42`; a subject given to `emit` wins. */
  readonly subject?: (data: OutputOf<Schema>) => string;
  /** Lets subscriptions choose among the top-level fields of the data. */
  readonly fields?: {
    /** In every body. */
    readonly always?: readonly NamesOf<OutputOf<Schema>>[];
    /** In the body of a subscription that selects nothing, or only unknown names. */
    readonly default?: readonly NamesOf<OutputOf<Schema>>[];
    /** Only when selected. `personal` data may not be among the default fields. */
    readonly optional?: { readonly [Name in NamesOf<OutputOf<Schema>>]?: { readonly personal?: boolean } };
  };
  /** Reads what is only known later; answers by event id what to lay over the data. At most 2 s. */
  readonly enrich?: (
    events: readonly (EnrichEvent & { readonly data: OutputOf<Schema> })[],
    options: { readonly signal: AbortSignal },
  ) => Promise<ReadonlyMap<string, Partial<OutputOf<Schema>>>>;
  /** Absent = `{id, type, timestamp, tenant_id?, subject?, revision?, actor?, data}`. */
  readonly envelope?: (event: EnvelopeEvent, data: OutputOf<Schema>) => unknown;
  /** Absent = the worker's policy. */
  readonly retry?: RetryPolicyInput;
  /** Data for test sends and the catalogue; must satisfy the schema. */
  readonly example?: InputOf<Schema>;
  /** "emit": capture itself makes the deliveries; allows neither `fields` nor `enrich`. Default "dispatch". */
  readonly fanOut?: "dispatch" | "emit";
} & (Schema extends WithJsonSchema
  ? { /** Absent = what the schema tells. */ readonly jsonSchema?: Readonly<Record<string, unknown>> }
  : { /** The schema library does not tell it. */ readonly jsonSchema: Readonly<Record<string, unknown>> });

type ShapesOf<Schemas extends Record<string, StandardSchema>, Broadcasts> = {
  readonly [Type in keyof Schemas & string]: {
    readonly data: InputOf<Schemas[Type]>;
    readonly broadcast: Type extends keyof Broadcasts
      ? Broadcasts[Type] extends true
        ? true
        : false
      : false;
  };
};

/**
 * Declares the events of an application; types and data of `emit` are inferred from it.
 * `broadcast: true` allows events of a type without a tenant where tenants are required.
 * @throws ConfigurationError, naming the type and the mend, for a definition that cannot work.
 */
export function defineEvents<
  Schemas extends Record<string, StandardSchema>,
  const Broadcasts extends { readonly [Type in keyof Schemas]: unknown },
>(
  definitions: { readonly [Type in keyof Schemas]: EventDefinition<Schemas[Type]> } & {
    readonly [Type in keyof Broadcasts]: { readonly broadcast?: Broadcasts[Type] & boolean };
  },
): EventSet<ShapesOf<Schemas, Broadcasts>> {
  const catalogue = new Map<string, EventTypeDefinition>();
  for (const [type, definition] of Object.entries(definitions))
    catalogue.set(type, checkedDefinition(type, definition));
  return { catalogue };
}
