import type { EventTypeDefinition, FieldRules } from "../model/definition.ts";
import { ConfigurationError } from "../model/errors.ts";
import { isEventType } from "../model/identifiers.ts";
import { parseJson, stringifyJson } from "../model/json.ts";
import { forSelections, type JsonSchema, jsonSchemaOf, propertyNames } from "./json-schema.ts";
import { validateWith } from "./schema-validation.ts";
import type { StandardSchema } from "./standard-schema.ts";

/** What the compiler lets through, and what plain JavaScript may give. */
interface GivenDefinition extends Partial<Omit<EventTypeDefinition, "fields" | "validate" | "type">> {
  readonly schema?: unknown;
  readonly fields?: Partial<FieldRules>;
}

const known = new Set([
  "description",
  "schema",
  "jsonSchema",
  "subject",
  "fields",
  "enrich",
  "envelope",
  "retry",
  "example",
  "fanOut",
  "broadcast",
]);

/** Checks one event type and fills in what was left out. @throws ConfigurationError */
export function checkedDefinition(type: string, given: unknown): EventTypeDefinition {
  const refuse = (message: string): never => {
    throw new ConfigurationError(`Event type ${JSON.stringify(type)}: ${message}`);
  };
  if (!isEventType(type))
    refuse("must be lower-case words of a-z 0-9 _ joined by dots, at most 128 characters.");
  if (type === "hookwell" || type.startsWith("hookwell."))
    refuse("names under hookwell.* are Hookwell's own.");
  if (typeof given !== "object" || given === null) refuse("must be an object with a schema.");
  const definition = given as GivenDefinition;
  for (const name of Object.keys(definition)) if (!known.has(name)) refuse(`has no setting "${name}".`);
  const { schema } = definition;
  if (!isStandardSchema(schema))
    return refuse("schema must be a Standard Schema, such as a zod, valibot or arktype schema.");

  const fanOut = definition.fanOut ?? "dispatch";
  if (fanOut !== "dispatch" && fanOut !== "emit") refuse('fanOut must be "dispatch" or "emit".');
  if (fanOut === "emit" && (definition.fields || definition.enrich))
    refuse('fanOut "emit" renders one body at capture, so it allows neither fields nor enrich; remove them.');

  const jsonSchema = jsonSchemaOf(type, schema, definition.jsonSchema);
  const fields = definition.fields && checkedFields(definition.fields, jsonSchema, refuse);
  const example = checkedExample(schema, definition.example, refuse);
  return {
    type,
    validate: (data) => validateWith(schema, data),
    jsonSchema: forSelections(jsonSchema, fields),
    fanOut,
    broadcast: definition.broadcast ?? false,
    ...(definition.description === undefined ? {} : { description: definition.description }),
    ...(definition.subject && { subject: definition.subject }),
    ...(fields && { fields }),
    ...(definition.enrich && { enrich: definition.enrich }),
    ...(definition.envelope && { envelope: definition.envelope }),
    ...(definition.retry === undefined ? {} : { retry: definition.retry }),
    ...(example === undefined ? {} : { example }),
  };
}

function isStandardSchema(value: unknown): value is StandardSchema {
  // An arktype schema is a function.
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as { "~standard"?: { version?: unknown; validate?: unknown } })["~standard"];
  return standard?.version === 1 && typeof standard.validate === "function";
}

function checkedFields(
  given: Partial<FieldRules>,
  jsonSchema: JsonSchema,
  refuse: (message: string) => never,
): FieldRules {
  const fields = { always: given.always ?? [], default: given.default ?? [], optional: given.optional ?? {} };
  const names = propertyNames(jsonSchema);
  for (const name of [...fields.always, ...fields.default, ...Object.keys(fields.optional)])
    if (names && !names.has(name)) refuse(`fields name "${name}", which the data does not have.`);
  for (const list of ["always", "default"] as const)
    for (const name of fields[list])
      if (fields.optional[name]?.personal)
        refuse(
          `"${name}" is personal, so it must be sent only when selected; take it out of fields.${list}.`,
        );
  return fields;
}

/** The example as the schema makes it, as JSON. One that only an asynchronous schema can judge is taken as it is. */
function checkedExample(
  schema: StandardSchema,
  example: unknown,
  refuse: (message: string) => never,
): unknown {
  if (example === undefined) return undefined;
  const result = validateWith(schema, example);
  if (result instanceof Promise) {
    // Its verdict comes too late to refuse the definition.
    result.catch(() => {});
    return example;
  }
  if (result.ok) return parseJson(stringifyJson(result.value));
  const [first] = result.problems;
  return refuse(`its example fails its schema: ${first?.pointer || "/"}: ${first?.message}.`);
}
