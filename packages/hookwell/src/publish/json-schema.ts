import type { FieldRules } from "../model/definition.ts";
import { ConfigurationError } from "../model/errors.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * The JSON Schema of a type's data: the explicit one, else what the schema tells of its output.
 * @throws ConfigurationError when there is neither, or the schema cannot say it.
 */
export function jsonSchemaOf(type: string, schema: unknown, explicit: JsonSchema | undefined): JsonSchema {
  if (explicit !== undefined) return explicit;
  const standard = (schema as { "~standard": { jsonSchema?: unknown } })["~standard"].jsonSchema;
  if (!hasOutput(standard))
    throw new ConfigurationError(
      `Event type ${type}: its schema library does not tell a JSON Schema; give "jsonSchema".`,
    );
  try {
    return standard.output({ target: "draft-2020-12" });
  } catch (error) {
    throw new ConfigurationError(
      `Event type ${type}: its schema has no JSON Schema (${error instanceof Error ? error.message : error}); give "jsonSchema".`,
    );
  }
}

function hasOutput(value: unknown): value is { output: (options: { target: string }) => JsonSchema } {
  return (
    typeof value === "object" && value !== null && "output" in value && typeof value.output === "function"
  );
}

/**
 * The schema as every body of a type with field rules satisfies it: a subscription may leave out all but the
 * `always` fields, so only those stay required.
 */
export function forSelections(schema: JsonSchema, rules: FieldRules | undefined): JsonSchema {
  if (rules === undefined) return schema;
  const result: Record<string, unknown> = { ...schema };
  if (Array.isArray(schema.required))
    result.required = schema.required.filter((name) => rules.always.includes(name));
  for (const word of ["anyOf", "oneOf", "allOf"]) {
    const branches = schema[word];
    if (Array.isArray(branches)) result[word] = branches.map((branch) => forSelections(branch, rules));
  }
  return result;
}

/** Names of the top-level properties, or undefined when the schema does not fix them. */
export function propertyNames(schema: JsonSchema): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  const branches = [schema.anyOf, schema.oneOf, schema.allOf].filter(Array.isArray).flat() as JsonSchema[];
  for (const branch of branches) {
    const inner = propertyNames(branch);
    if (!inner) return undefined;
    for (const name of inner) names.add(name);
  }
  if (typeof schema.properties === "object" && schema.properties !== null)
    for (const name of Object.keys(schema.properties)) names.add(name);
  else if (branches.length === 0) return undefined;
  return names;
}
