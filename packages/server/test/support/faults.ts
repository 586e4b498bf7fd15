import type { Schema } from "./operations.ts";
import type { Json } from "./world.ts";

/** A value that a schema does not allow, made from one that it does. */
export interface Fault {
  readonly what: string;
  readonly pointer: string;
  readonly value: Json;
}

const typeOf = (value: Json): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
const typesOf = ({ type }: Schema): readonly string[] =>
  type === undefined ? [] : typeof type === "string" ? [type] : type;

/** Every way in which one part of the value may be wrong, one at a time. */
export function faultsOf(schema: Schema, value: Json, pointer = ""): Fault[] {
  const branches = schema.anyOf;
  if (branches) {
    const own = branchOf(branches, value);
    const faults = faultsOf({ ...own, type: branches.flatMap(typesOf), ...inside(own) }, value, pointer);
    // Without the field that tells one object from the others, it may be any of them that is said to lack something.
    const alike = branches.filter((branch) => branch.properties !== undefined).length > 1;
    return alike
      ? faults.map((found) => (found.what.startsWith("no ") ? { ...found, pointer } : found))
      : faults;
  }
  const types = typesOf(schema);
  const fault = (what: string, wrong: Json): Fault => ({ what, pointer, value: wrong });
  const faults: Fault[] = [];
  const others: [string, Json][] = [
    ["null", null],
    ["string", "text"],
    ["number", 1.5],
    ["boolean", true],
    ["array", []],
    ["object", {}],
  ];
  for (const [type, other] of others) if (!types.includes(type)) faults.push(fault(`a ${type}`, other));
  if (types.includes("string") && types.length <= 2) faults.push(...textFaults(schema, fault));
  if (types.includes("integer")) {
    if (schema.minimum !== undefined) faults.push(fault("too small", schema.minimum - 1));
    if (schema.maximum !== undefined) faults.push(fault("too large", schema.maximum + 1));
  }
  if (schema.items) faults.push(...listFaults(schema, schema.items, value, pointer));
  if (schema.properties) faults.push(...objectFaults(schema, schema.properties, value ?? {}, pointer));
  else if (typeof schema.additionalProperties === "object")
    faults.push(...mapFaults(schema, schema.additionalProperties, pointer));
  return faults;
}

/** The branch that a value is of. */
function branchOf(branches: readonly Schema[], value: Json): Schema | undefined {
  return branches.find(
    (branch) =>
      typesOf(branch).includes(typeOf(value)) &&
      (branch.properties === undefined || Object.keys(value).every((name) => name in branch.properties!)),
  );
}

function inside(schema: Schema | undefined): Schema {
  return schema ? { properties: schema.properties, required: schema.required, items: schema.items } : {};
}

function textFaults(schema: Schema, fault: (what: string, wrong: Json) => Fault): Fault[] {
  if (schema.enum) return [fault("not one of them", "no such value")];
  const { minLength = 0, maxLength, pattern, format } = schema;
  return [
    ...(minLength > 0 ? [fault("empty", "")] : []),
    ...(maxLength !== undefined ? [fault("too long", "a".repeat(maxLength + 1))] : []),
    ...(pattern !== undefined ? [fault("another form", "Not a !")] : []),
    ...(format !== undefined ? [fault("no such form", "yesterday")] : []),
    fault("NUL", "a\u0000b"),
    fault("half of a surrogate pair", "a\ud800"),
  ];
}

function listFaults(schema: Schema, items: Schema, value: Json, pointer: string): Fault[] {
  const item = Array.isArray(value) && value.length > 0 ? value[0] : sample(items);
  const { minItems = 0, maxItems } = schema;
  return [
    ...(minItems > 0 ? [{ what: "an empty list", pointer, value: [] }] : []),
    ...(maxItems !== undefined
      ? [{ what: "too many", pointer, value: Array.from({ length: maxItems + 1 }, () => item) }]
      : []),
    ...faultsOf(items, item, `${pointer}/0`).map((inner) => ({ ...inner, value: [inner.value] })),
  ];
}

function objectFaults(
  schema: Schema,
  properties: Readonly<Record<string, Schema>>,
  value: Json,
  pointer: string,
): Fault[] {
  const base = Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => value[name] !== undefined || schema.required?.includes(name))
      .map(([name, inner]) => [name, value[name] ?? sample(inner)]),
  );
  const without = (name: string): Json =>
    Object.fromEntries(Object.entries(base).filter(([other]) => other !== name));
  return [
    { what: "an unknown field", pointer: `${pointer}/surprise`, value: { ...base, surprise: 1 } },
    ...(schema.required ?? []).map((name) => ({
      what: `no ${name}`,
      pointer: `${pointer}/${name}`,
      value: without(name),
    })),
    ...Object.entries(properties).flatMap(([name, inner]) =>
      faultsOf(inner, base[name] ?? sample(inner), `${pointer}/${name}`).map((found) => ({
        ...found,
        value: { ...base, [name]: found.value },
      })),
    ),
  ];
}

function mapFaults(schema: Schema, values: Schema, pointer: string): Fault[] {
  const { maxProperties } = schema;
  const many = (count: number): Json =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-n${n}`, "v"]));
  return [
    ...faultsOf(values, "v", `${pointer}/x-name`).map((found) => ({
      ...found,
      value: { "x-name": found.value },
    })),
    ...(maxProperties === undefined ? [] : [{ what: "too many", pointer, value: many(maxProperties + 1) }]),
  ];
}

/** A value that the schema allows. */
export function sample(schema: Schema): Json {
  if (schema.example !== undefined) return schema.example;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return sample(schema.anyOf[0]!);
  const [type] = typesOf(schema);
  if (type === "object")
    return Object.fromEntries(
      Object.entries(schema.properties ?? {})
        .filter(([name]) => schema.required?.includes(name))
        .map(([name, inner]) => [name, sample(inner)]),
    );
  if (type === "array") return schema.items ? [sample(schema.items)] : [];
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "boolean") return true;
  if (schema.format === "date-time") return "2026-03-01T00:00:00Z";
  return "a".repeat(Math.max(1, schema.minLength ?? 1));
}

/** Values at the very end of what a schema allows, one field at a time. Where a pattern or a format rules, none. */
export function edgesOf(schema: Schema, value: Json): Fault[] {
  const branch = (schema.anyOf && branchOf(schema.anyOf, value)) ?? schema;
  return Object.entries(branch.properties ?? {}).flatMap(([name, inner]) =>
    edgeValues(inner).map(({ what, edge }) => ({
      what,
      pointer: `/${name}`,
      value: { ...value, [name]: edge },
    })),
  );
}

function edgeValues(schema: Schema): { readonly what: string; readonly edge: Json }[] {
  const {
    minLength = 0,
    maxLength,
    minimum,
    maximum,
    maxItems,
    minItems = 0,
    items,
    pattern,
    format,
  } = schema;
  const types = typesOf(schema);
  const edges: { what: string; edge: Json }[] = [];
  const add = (what: string, edge: Json): void => void edges.push({ what, edge });
  if (types.length === 2 && types.includes("null")) add("null", null);
  if (schema.enum) for (const one of schema.enum) add(`${one}`, one);
  else if (types.includes("string") && types.length <= 2 && pattern === undefined && format === undefined) {
    if (maxLength !== undefined) add("longest", "a".repeat(maxLength));
    add("shortest", "a".repeat(minLength));
  }
  if (minimum !== undefined) add("least", minimum);
  if (maximum !== undefined) add("most", maximum);
  if (types.includes("boolean") && types.length <= 2) add("true", true);
  if (items && maxItems !== undefined && items.enum === undefined)
    add(
      "longest list",
      Array.from({ length: maxItems }, (_, n) => `${sample(items)}`.replace(/\w$/, `${n}`)),
    );
  if (items && minItems === 0 && types.length <= 2) add("empty list", []);
  return edges;
}

/** The same for a query parameter, which is always text. */
export function queryFaults(schema: Schema): Fault[] {
  const types = typesOf(schema);
  const fault = (what: string, value: string): Fault => ({ what, pointer: "", value });
  if (types.includes("integer"))
    return [
      ...(schema.minimum === undefined ? [] : [fault("too small", String(schema.minimum - 1))]),
      ...(schema.maximum === undefined ? [] : [fault("too large", String(schema.maximum + 1))]),
      ...["", "x", "1.5", "1e1"].map((text) => fault(`"${text}"`, text)),
    ];
  if (types.includes("boolean")) return [fault("no boolean", "maybe")];
  return textFaults(schema, fault).filter(({ what }) => !what.startsWith("half"));
}
