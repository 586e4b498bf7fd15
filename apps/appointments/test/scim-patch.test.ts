import { describe, expect, test } from "vitest";
import { patchOpUrn, readPatchOp, ScimPatchError, scimChanges } from "../src/users/scim-patch.ts";
import type { User } from "../src/users/user.ts";

const user: User = {
  id: "u1",
  projectId: "live",
  email: "ada@example.com",
  name: "Ada",
  status: "active",
  emailVerified: true,
  ianaTimezone: "UTC",
  isAdmin: false,
  revision: 1,
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z",
};

const patch = (Operations: unknown, before: User = user) =>
  scimChanges(readPatchOp({ schemas: [patchOpUrn], Operations }), before);

const urn = "urn:ietf:params:scim:schemas:core:2.0:User";

describe("what identity providers send", () => {
  test.each<[string, unknown, object]>([
    ["active as a boolean", [{ op: "replace", path: "active", value: false }], { status: "suspended" }],
    [
      "active as text, op in capitals (Entra)",
      [{ op: "Replace", path: "active", value: "False" }],
      { status: "suspended" },
    ],
    ["active without a path (Okta)", [{ op: "replace", value: { active: false } }], { status: "suspended" }],
    ["a path in another case", [{ op: "add", path: "ACTIVE", value: "true" }], { status: "active" }],
    [
      "a path with its urn",
      [{ op: "replace", path: `${urn}:active`, value: false }],
      { status: "suspended" },
    ],
    ["displayName", [{ op: "replace", path: "displayName", value: "Zoë" }], { name: "Zoë" }],
    ["name.formatted", [{ op: "replace", path: "name.formatted", value: "Ada L" }], { name: "Ada L" }],
    [
      "name as an object of parts",
      [{ op: "replace", path: "name", value: { givenName: "Ada", familyName: "Lovelace" } }],
      { name: "Ada Lovelace" },
    ],
    [
      "userName",
      [{ op: "replace", path: "userName", value: "new@example.com" }],
      { email: "new@example.com", emailVerified: false },
    ],
    [
      "userName in another case stays verified",
      [{ op: "replace", value: { username: "ADA@example.com" } }],
      { email: "ADA@example.com" },
    ],
    [
      "emails with a filter",
      [{ op: "replace", path: 'emails[type eq "work"].value', value: "w@example.com" }],
      { email: "w@example.com", emailVerified: false },
    ],
    [
      "the primary one of a list",
      [
        {
          op: "replace",
          path: "emails",
          value: [{ value: "a@example.com" }, { value: "b@example.com", primary: true }],
        },
      ],
      { email: "b@example.com", emailVerified: false },
    ],
    [
      "several operations: the last one holds",
      [
        { op: "replace", path: "active", value: false },
        { op: "replace", value: { displayName: "First", active: true, id: "ignored", schemas: [urn] } },
        { op: "replace", path: "displayName", value: "Second" },
      ],
      { status: "active", name: "Second" },
    ],
  ])("%s", (_, operations, changes) => {
    expect(patch(operations)).toEqual(changes);
  });

  test("active: false leaves a suspended or archived user as it is", () => {
    const operations = [{ op: "replace", path: "active", value: false }];
    for (const status of ["suspended", "archived"] as const)
      expect(patch(operations, { ...user, status })).toEqual({});
  });
});

describe("what is refused, with the scimType of RFC 7644", () => {
  test.each<[string, unknown, string]>([
    ["no operations", [], "invalidSyntax"],
    ["an unknown op", [{ op: "move", path: "active", value: false }], "invalidSyntax"],
    ["an operation that is no object", ["replace"], "invalidSyntax"],
    ["an unknown attribute", [{ op: "replace", path: "shoeSize", value: 3 }], "invalidPath"],
    [
      "an inherited name as an attribute",
      [{ op: "replace", path: "constructor", value: "x" }],
      "invalidPath",
    ],
    ["a path that is no text", [{ op: "replace", path: 7, value: false }], "invalidPath"],
    ["no value", [{ op: "replace", path: "active" }], "invalidValue"],
    ["a value that is no object, without a path", [{ op: "replace", value: false }], "invalidValue"],
    ["active that is neither", [{ op: "replace", path: "active", value: "nope" }], "invalidValue"],
    ["active: null", [{ op: "replace", path: "active", value: null }], "invalidValue"],
    ["a name with NUL", [{ op: "replace", path: "displayName", value: "a\u0000" }], "invalidValue"],
    ["an address that is none", [{ op: "replace", path: "userName", value: "ada" }], "invalidValue"],
    [
      "two addresses, none primary",
      [{ op: "add", path: "emails", value: [{ value: "a@b.c" }, { value: "d@e.f" }] }],
      "invalidValue",
    ],
    ["remove without a path", [{ op: "remove" }], "noTarget"],
    ["remove of what every user has", [{ op: "remove", path: "userName" }], "mutability"],
  ])("%s", (_, operations, scimType) => {
    expect(() => patch(operations)).toThrow(expect.objectContaining({ scimType }));
  });

  test.each([
    [null],
    ["text"],
    [{ Operations: [] }],
    [{ schemas: ["urn:other"], Operations: [{ op: "remove" }] }],
  ])("%j is no PatchOp message", (body) => {
    expect(() => readPatchOp(body)).toThrow(ScimPatchError);
  });
});
