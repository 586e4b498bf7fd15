import { type } from "arktype";
import { ConfigurationError, createHookwell, defineEvents, MemoryOutbox } from "hookwell";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";

/** What plain JavaScript could pass. */
const loosely = defineEvents as (definitions: unknown) => ReturnType<typeof defineEvents>;
const schema = z.object({ id: z.string(), email: z.string(), plan: z.string() });

describe("defineEvents", () => {
  test("takes zod, valibot and arktype, and finds or takes their JSON Schema", () => {
    const { catalogue } = defineEvents({
      "a.zod": { schema: z.object({ id: z.string() }) },
      "a.valibot": { schema: v.object({ id: v.string() }), jsonSchema: { title: "given" } },
      "a.arktype": { schema: type({ id: "string" }) },
    });
    expect(catalogue.get("a.zod")?.jsonSchema).toMatchObject({
      properties: { id: { type: "string" } },
      required: ["id"],
    });
    expect(catalogue.get("a.valibot")?.jsonSchema).toEqual({ title: "given" });
    expect(catalogue.get("a.arktype")?.jsonSchema).toMatchObject({ properties: { id: { type: "string" } } });
  });

  test("the published schema requires only the fields that every body has", () => {
    const { catalogue } = defineEvents({
      "a.b": {
        schema,
        fields: { always: ["id"], default: ["plan"], optional: { email: { personal: true } } },
      },
      "a.union": {
        schema: z.union([
          z.object({ kind: z.literal("x"), id: z.string() }),
          z.object({ kind: z.literal("y"), n: z.number() }),
        ]),
        fields: { always: ["kind"], default: ["id", "n"] },
      },
    });
    expect(catalogue.get("a.b")?.jsonSchema.required).toEqual(["id"]);
    const branches = catalogue.get("a.union")?.jsonSchema.anyOf as { required: string[] }[];
    expect(branches.map((branch) => branch.required)).toEqual([["kind"], ["kind"]]);
  });

  test("the example is stored as the schema makes it", () => {
    const { catalogue } = defineEvents({
      "a.b": { schema: z.object({ n: z.number().default(7) }), example: {} },
    });
    expect(catalogue.get("a.b")?.example).toEqual({ n: 7 });
  });

  test.each([
    ["a name with capitals", { "User.created": { schema } }, /lower-case words/],
    ["a reserved name", { "hookwell.event.parked": { schema } }, /Hookwell's own/],
    ["no schema", { "a.b": {} }, /Standard Schema/],
    ["a misspelled setting", { "a.b": { schema, fanout: "emit" } }, /no setting "fanout"/],
    ["an unknown fan-out", { "a.b": { schema, fanOut: "now" } }, /fanOut/],
    [
      "fan-out emit with fields",
      { "a.b": { schema, fanOut: "emit", fields: { always: ["id"] } } },
      /neither/,
    ],
    [
      "fan-out emit with enrich",
      { "a.b": { schema, fanOut: "emit", enrich: async () => new Map() } },
      /neither/,
    ],
    [
      "a personal field among the defaults",
      { "a.b": { schema, fields: { default: ["email"], optional: { email: { personal: true } } } } },
      /personal/,
    ],
    [
      "a personal field in every body",
      { "a.b": { schema, fields: { always: ["email"], optional: { email: { personal: true } } } } },
      /personal/,
    ],
    ["a field that the data lacks", { "a.b": { schema, fields: { always: ["nope"] } } }, /"nope"/],
    ["an example that fails", { "a.b": { schema, example: { id: 1 } } }, /example fails/],
    ["a schema without JSON Schema", { "a.b": { schema: v.object({ id: v.string() }) } }, /jsonSchema/],
    [
      "output that JSON Schema cannot say",
      { "a.b": { schema: z.object({ at: z.date() }) } },
      /a\.b.*jsonSchema/,
    ],
  ])("refuses %s, naming the type", (_what, definitions, message) => {
    expect(() => loosely(definitions)).toThrow(ConfigurationError);
    expect(() => loosely(definitions)).toThrow(message);
    expect(() => loosely(definitions)).toThrow(Object.keys(definitions)[0]);
  });

  test("the catalogue of an instance lists what was defined", () => {
    const events = defineEvents({
      "a.b": { schema, description: "B happened", fields: { always: ["id"] }, broadcast: true },
    });
    const { catalogue } = createHookwell({ store: new MemoryOutbox(), events });
    expect(catalogue).toEqual([
      {
        type: "a.b",
        description: "B happened",
        jsonSchema: expect.objectContaining({ type: "object" }),
        fields: { always: ["id"], default: [], optional: {} },
        fanOut: "dispatch",
        broadcast: true,
      },
    ]);
  });
});
