import { z } from "@hono/zod-openapi";
import type { CatalogueEntry } from "hookwell";
import { anyJson } from "./common.ts";

export const catalogue = z
  .strictObject({
    items: z.array(
      z.strictObject({
        type: z.string(),
        description: z.string().nullable(),
        json_schema: z
          .record(z.string(), z.unknown())
          .openapi({ type: "object", additionalProperties: true, description: "JSON Schema of the data." }),
        fields: z
          .strictObject({
            always: z.array(z.string()),
            default: z.array(z.string()),
            optional: z.record(z.string(), z.strictObject({ personal: z.boolean() })),
          })
          .nullable(),
        example: anyJson,
        fan_out: z.enum(["dispatch", "emit"]),
        broadcast: z.boolean(),
      }),
    ),
  })
  .openapi("Catalogue");

export function catalogueToJson(entries: readonly CatalogueEntry[]): z.input<typeof catalogue> {
  return {
    items: entries.map((entry) => ({
      type: entry.type,
      description: entry.description ?? null,
      json_schema: { ...entry.jsonSchema },
      fields: entry.fields
        ? {
            always: [...entry.fields.always],
            default: [...entry.fields.default],
            optional: Object.fromEntries(
              Object.entries(entry.fields.optional).map(([field, { personal }]) => [
                field,
                { personal: personal ?? false },
              ]),
            ),
          }
        : null,
      example: entry.example ?? null,
      fan_out: entry.fanOut,
      broadcast: entry.broadcast,
    })),
  };
}
