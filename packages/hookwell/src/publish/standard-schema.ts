/**
 * The part of the Standard Schema interface (version 1) that Hookwell uses: zod, valibot, arktype and others
 * have it, so that no schema library is a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A schema that can also tell its JSON Schema (Standard JSON Schema, version 1). */
export interface WithJsonSchema {
  readonly "~standard": {
    readonly jsonSchema: { readonly output: (options: { target: string }) => Record<string, unknown> };
  };
}

/** What a schema accepts. */
export type InputOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["input"];
/** What a schema makes of it. */
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];
