import { Validator } from "@seriousme/openapi-schema-validator";
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
