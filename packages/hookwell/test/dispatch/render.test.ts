import { describe, expect, test } from "vitest";
import { renderBody } from "../../src/dispatch/render.ts";
import { userEnvelope } from "../../src/dispatch/user-envelope.ts";
import type { EnvelopeEvent, EventTypeDefinition } from "../../src/model/definition.ts";
import { parseJson } from "../../src/model/json.ts";

const event: EnvelopeEvent = {
  id: "evt_1",
  type: "order.placed",
  projectId: "live",
  occurredAt: new Date("2026-03-01T09:00:00.123Z"),
};

function definition(changes: Partial<EventTypeDefinition>): EventTypeDefinition {
  return {
    type: event.type,
    validate: (value) => ({ ok: true, value }),
    jsonSchema: {},
    fanOut: "dispatch",
    broadcast: false,
    ...changes,
  };
}

const fields = {
  always: ["id", "state"],
  default: ["total"],
  optional: { note: {}, email: { personal: true }, missing: {} },
};
const data = { email: "a@b.example", state: "new", note: "", id: 7, total: 3, secret: "never" };

function dataOf(selection: readonly string[] | undefined): unknown {
  const { bytes } = renderBody(event, data, definition({ fields }), selection);
  return (JSON.parse(Buffer.from(bytes).toString("utf8")) as { data: unknown }).data;
}

describe("field selection", () => {
  test.each([
    ["absent", undefined],
    ["empty", []],
    ["only unknown names", ["secret", "nope", "__proto__", "constructor"]],
  ])("%s: the default set", (_name, selection) => {
    expect(dataOf(selection)).toEqual({ id: 7, state: "new", total: 3 });
  });

  test("what is selected comes with what is always there, and nothing else", () => {
    expect(dataOf(["email"])).toEqual({ id: 7, state: "new", email: "a@b.example" });
    expect(dataOf(["state"])).toEqual({ id: 7, state: "new" });
    expect(dataOf(["note", "missing", "secret"])).toEqual({ id: 7, state: "new", note: "" });
  });

  test("the order of a selection, and repeats in it, change no byte", () => {
    const [one, two] = [
      ["note", "email", "total"],
      ["total", "email", "note", "email", "unknown"],
    ].map((selection) => renderBody(event, data, definition({ fields }), selection));
    expect(two).toEqual(one);
    expect(one!.variant).toMatch(/^[\w-]{16}$/);
    expect(renderBody(event, data, definition({ fields }), ["note"]).variant).not.toBe(one!.variant);
  });

  test("a type without rules gives all of its data, whatever is selected", () => {
    const { bytes } = renderBody(event, data, definition({}), ["id"]);
    expect(JSON.parse(Buffer.from(bytes).toString())).toMatchObject({ data });
  });
});

describe("the default envelope", () => {
  test("leaves out what is not there", () => {
    const { bytes } = renderBody(event, [1], undefined, undefined);
    expect(Buffer.from(bytes).toString()).toBe(
      '{"id":"evt_1","type":"order.placed","timestamp":"2026-03-01T09:00:00.123Z","data":[1]}',
    );
  });

  test("says tenant, subject, revision and actor when they are given, revision 0 too", () => {
    const full = {
      ...event,
      tenantId: "t_1",
      subject: "order:9",
      revision: 0,
      actor: { type: "api_key", id: "key_1" },
    };
    const { bytes } = renderBody(full, null, undefined, undefined);
    expect(Buffer.from(bytes).toString()).toBe(
      '{"id":"evt_1","type":"order.placed","timestamp":"2026-03-01T09:00:00.123Z","tenant_id":"t_1","subject":"order:9","revision":0,"actor":{"type":"api_key","id":"key_1"},"data":null}',
    );
  });

  test("keeps every digit, NUL and lone surrogates, and a key named __proto__", () => {
    const text = '{"n":123456789012345678901234567890,"__proto__":{"a":1},"s":"\\u0000\\ud800"}';
    const { bytes } = renderBody(event, parseJson(text), undefined, undefined);
    expect(Buffer.from(bytes).toString()).toContain(`"data":${text}`);
  });
});

describe("the user envelope", () => {
  const user = { id: "usr_1", email: "ann@x.example", name: "", emailVerified: false, password_hash: "x" };

  test("events 7: id, type, project_id, occurred_at and an allow-list of the user", () => {
    const created = { ...event, type: "user.created" };
    const { bytes } = renderBody(created, user, definition({ envelope: userEnvelope }), undefined);
    expect(Buffer.from(bytes).toString()).toBe(
      '{"id":"evt_1","type":"user.created","project_id":"live","occurred_at":"2026-03-01T09:00:00.123Z","user":{"id":"usr_1","email":"ann@x.example","email_verified":false}}',
    );
  });

  test("events 7: tenant, name, status, revision and actor when given; snake_case records too", () => {
    const updated = { ...event, tenantId: "t", revision: 4, actor: { type: "user", id: "usr_2" } };
    const record = { id: "usr_1", email: "e", name: "Ann", status: "active", email_verified: true };
    expect(userEnvelope(updated, record)).toEqual({
      id: "evt_1",
      type: "order.placed",
      project_id: "live",
      tenant_id: "t",
      occurred_at: "2026-03-01T09:00:00.123Z",
      user: record,
      revision: 4,
      actor: { type: "user", id: "usr_2" },
    });
    expect(userEnvelope({ ...event, tenantId: "" }, record)).not.toHaveProperty("tenant_id");
  });
});
