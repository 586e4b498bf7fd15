import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, startWorld, type World } from "./support/world.ts";

describe("the description of the API", () => {
  let world: World;
  let document: Json;
  beforeAll(async () => {
    world = await startWorld("memory", { project: "live" });
    document = await world.ok(200, "GET", "/openapi.json", { key: null });
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test("is valid OpenAPI 3.1", async () => {
    const result = await new Validator().validate(JSON.parse(JSON.stringify(document)));
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
    expect(document.openapi).toBe("3.1.0");
  });

  test("has no empty schema, and every object says which fields it has", () => {
    const faults: string[] = [];
    const look = (value: Json, path: string): void => {
      if (Array.isArray(value)) {
        value.forEach((item, index) => void look(item, `${path}/${index}`));
        return;
      }
      if (typeof value !== "object" || value === null) return;
      for (const [key, inner] of Object.entries(value as Record<string, Json>)) {
        const here = `${path}/${key}`;
        const isSchema =
          ["schema", "items", "additionalProperties"].includes(key) || /\/(properties|schemas)$/.test(path);
        if (isSchema && typeof inner === "object" && Object.keys(inner).length === 0) faults.push(here);
        if (isSchema && inner.type === "object" && inner.additionalProperties === undefined)
          faults.push(here);
        look(inner, here);
      }
    };
    look(document, "");
    expect(faults).toEqual([]);
  });

  test("every operation has an id of its own, a summary, its scopes and its errors", () => {
    const ids = new Set<string>();
    for (const [path, item] of Object.entries(document.paths as Record<string, Json>))
      for (const [method, operation] of Object.entries(item as Record<string, Json>)) {
        expect(operation.operationId, `${method} ${path}`).toBeTypeOf("string");
        expect(operation.summary).toBeTypeOf("string");
        expect(ids.has(operation.operationId)).toBe(false);
        ids.add(operation.operationId);
        if (path.startsWith("/v1/")) {
          expect(operation.security[0].key.length).toBeGreaterThan(0);
          for (const status of ["400", "401", "403", "503"])
            expect(operation.responses).toHaveProperty(status);
        }
      }
    expect(ids.size).toBeGreaterThan(20);
  });

  test("every body and every kind of thing has an example, and it is as its schema says", () => {
    const ajv = new Ajv2020({ strict: false });
    (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
    ajv.addSchema({ ...document, $id: "openapi" });
    const fits = (place: string, example: unknown, where: string): void => {
      expect(example, `${where} has no example`).toBeDefined();
      const validate = ajv.compile({ $ref: `openapi#${place}` });
      expect(validate(example) || ajv.errorsText(validate.errors), where).toBe(true);
    };
    const at = (...steps: string[]): string =>
      steps
        .map((step) => `/${encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))}`)
        .join("");
    for (const [path, item] of Object.entries(document.paths as Record<string, Json>))
      for (const [method, operation] of Object.entries(item as Record<string, Json>))
        for (const [media, body] of Object.entries((operation.requestBody?.content ?? {}) as Json)) {
          const place = at("paths", path, method, "requestBody", "content", media, "schema");
          fits(place, (body as Json).example, `${method} ${path}`);
        }
    for (const name of [
      "Subscription",
      "CreatedSubscription",
      "Event",
      "Delivery",
      "Key",
      "Problem",
      "Explanation",
    ])
      fits(at("components", "schemas", name), document.components.schemas[name].example, name);
  });

  test("every problem that an operation may answer has its codes, and each code has one status", () => {
    const statuses = new Map<string, string>();
    for (const [path, item] of Object.entries(document.paths as Record<string, Json>))
      for (const [method, operation] of Object.entries(item as Record<string, Json>)) {
        if (path.startsWith("/v1/") && method === "post")
          for (const code of ["idempotency_in_progress", "idempotency_key_reused"])
            expect(JSON.stringify(operation.responses), `${method} ${path}`).toContain(code);
        for (const [status, response] of Object.entries(operation.responses as Record<string, Json>)) {
          if (Number(status) < 400) continue;
          const schema = response.content["application/problem+json"].schema;
          const codes: string[] = schema.allOf[1].properties.code.enum;
          expect(codes.length, `${method} ${path} ${status}`).toBeGreaterThan(0);
          for (const code of codes) {
            expect(statuses.get(code) ?? status, code).toBe(status);
            statuses.set(code, status);
            expect(response.description).toContain(`\`${code}\``);
          }
        }
      }
    expect(statuses.size).toBeGreaterThan(20);
  });

  test("the check of answers in these tests notices a field that is not described", () => {
    const answer = JSON.stringify({ items: [{ id: "key_1", surprise: true }], next_cursor: null });
    expect(() => world.described!.check("GET", "/v1/keys", 200, "application/json", answer)).toThrow(
      /not as described/,
    );
    expect(() => world.described!.check("GET", "/v1/keys", 418, "application/json", "{}")).toThrow(
      /not described/,
    );
  });

  test("/docs is a page that loads nothing and runs nothing, and has every operation and schema", async () => {
    const page = await world.call("GET", "/docs", { key: null });
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.text).not.toMatch(
      /<script|<link|<img|<iframe|\son\w+=|@import|url\(|https?:\/\/(?!example\.com)/i,
    );
    for (const [path, item] of Object.entries(document.paths as Record<string, Json>)) {
      expect(page.text).toContain(`<code>${path}</code>`);
      for (const operation of Object.values(item as Record<string, Json>))
        expect(page.text).toContain(`id="${operation.operationId}"`);
    }
    for (const name of Object.keys(document.components.schemas))
      expect(page.text).toContain(`<h3>${name}</h3>`);
    for (const [, target] of page.text.matchAll(/href="#([^"]+)"/g))
      expect(page.text).toContain(`id="${target}"`);
  });
});
