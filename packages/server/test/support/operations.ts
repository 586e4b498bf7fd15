import type { Json, World } from "./world.ts";

/** One route as the OpenAPI document describes it. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  /** `/v1/events/{id}`. */
  readonly path: string;
  /** One of them is enough, besides admin; empty = everybody may read it. */
  readonly scopes: readonly string[];
  readonly query: readonly { readonly name: string; readonly schema: Schema }[];
  readonly headers: readonly string[];
  readonly body?: { readonly schema: Schema; readonly example: Json; readonly required: boolean };
  readonly statuses: readonly string[];
}

/** A JSON Schema without references, as far as the tests read one. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly example?: unknown;
}

/** Every route that the server describes. */
export async function operationsOf(world: World): Promise<Operation[]> {
  const document = await world.ok(200, "GET", "/openapi.json", { key: null });
  const whole = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(whole);
    if (typeof value !== "object" || value === null) return value;
    if (typeof value.$ref === "string")
      return whole(document.components.schemas[value.$ref.split("/").at(-1)]);
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, whole(inner)]));
  };
  return Object.entries(document.paths as Json).flatMap(([path, item]) =>
    Object.entries(item as Json).map(([method, described]): Operation => {
      const operation = described as Json;
      const parameters: Json[] = operation.parameters ?? [];
      const json = operation.requestBody?.content["application/json"];
      return {
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        scopes: operation.security[0]?.key ?? [],
        query: whole(parameters.filter((parameter) => parameter.in === "query")),
        headers: parameters.filter((parameter) => parameter.in === "header").map(({ name }) => name),
        ...(json && {
          body: {
            schema: whole(json.schema),
            example: json.example,
            required: operation.requestBody.required,
          },
        }),
        statuses: Object.keys(operation.responses),
      };
    }),
  );
}
