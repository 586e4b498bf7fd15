import type { z } from "zod";
import { email, name } from "../http/text.ts";
import { emailKey, type User, type UserChanges } from "./user.ts";

export const patchOpUrn = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
export const userUrn = "urn:ietf:params:scim:schemas:core:2.0:User";

type ScimType = "invalidSyntax" | "invalidPath" | "invalidValue" | "noTarget" | "mutability";

/** A PATCH that RFC 7644 section 3.5.2 refuses with 400. */
export class ScimPatchError extends Error {
  readonly scimType: ScimType;
  constructor(scimType: ScimType, detail: string) {
    super(detail);
    this.name = "ScimPatchError";
    this.scimType = scimType;
  }
}

/** One operation, its words in the spelling of the RFC. */
interface Operation {
  readonly op: "add" | "replace" | "remove";
  /** Lower case, without the schema's urn; absent = the value names its attributes. */
  readonly path?: string;
  readonly value?: unknown;
}

/** SCIM attribute names are case-insensitive: lower case -> what it sets. */
const attributes = new Map<string, (value: unknown, before: User) => UserChanges>(
  Object.entries({
    active: (value, before) => activeChange(readBoolean(value), before),
    username: (value, before) => emailChange(value, "userName", before),
    displayname: (value) => ({ name: readName(value, "displayName") }),
    name: (value) => ({ name: nameOf(value) }),
    "name.formatted": (value) => ({ name: readName(value, "name.formatted") }),
    emails: (value, before) => emailChange(primaryEmail(value), "emails", before),
    "emails.value": (value, before) => emailChange(value, "emails.value", before),
  }),
);

/** A value filter on e-mails, such as `emails[type eq "work"].value`: the record has one address, so any names it. */
const filteredEmails = /^emails\[[^\]]*\](\.value)?$/;
/** What a request without a path may also carry, and changes nothing here. */
const ignored = new Set(["schemas", "id", "externalid", "meta"]);

/** Checks a PatchOp message. @throws ScimPatchError */
export function readPatchOp(body: unknown): readonly Operation[] {
  if (!isObject(body)) throw new ScimPatchError("invalidSyntax", "The body must be a PatchOp message.");
  const message = lowerKeys(body);
  const schemas = message.schemas;
  const named =
    Array.isArray(schemas) && schemas.some((urn) => String(urn).toLowerCase() === patchOpUrn.toLowerCase());
  if (!named) throw new ScimPatchError("invalidSyntax", `schemas must contain ${patchOpUrn}.`);
  const operations = message.operations;
  if (!Array.isArray(operations) || operations.length === 0 || operations.length > 100)
    throw new ScimPatchError("invalidSyntax", "Operations must be a list of 1 to 100 operations.");
  return operations.map(readOperation);
}

/** What the operations, in their order, make of a user. @throws ScimPatchError */
export function scimChanges(operations: readonly Operation[], before: User): UserChanges {
  let changes: UserChanges = {};
  for (const operation of operations) {
    const now = { ...before, ...changes };
    for (const [attribute, value] of targets(operation)) {
      const set = attributes.get(attribute);
      if (set === undefined)
        throw new ScimPatchError(
          "invalidPath",
          `${JSON.stringify(attribute.slice(0, 80))} is not an attribute of a user here.`,
        );
      changes = { ...changes, ...set(value, now) };
    }
  }
  return changes;
}

function targets({ op, path, value }: Operation): [string, unknown][] {
  if (op === "remove") {
    if (path === undefined) throw new ScimPatchError("noTarget", "remove needs a path.");
    throw new ScimPatchError(
      "mutability",
      `${JSON.stringify(path.slice(0, 80))} cannot be removed; every user has one.`,
    );
  }
  if (value === undefined) throw new ScimPatchError("invalidValue", `${op} needs a value.`);
  if (path !== undefined) return [[filteredEmails.test(path) ? emailsPath(path) : path, value]];
  if (!isObject(value))
    throw new ScimPatchError("invalidValue", `${op} without a path needs an object of attributes.`);
  return Object.entries(lowerKeys(value)).filter(([attribute]) => !ignored.has(attribute));
}

function emailsPath(path: string): string {
  return path.endsWith(".value") ? "emails.value" : "emails";
}

function readOperation(given: unknown): Operation {
  const { op, path, value } = isObject(given) ? lowerKeys(given) : {};
  const word = typeof op === "string" ? op.toLowerCase() : "";
  if (word !== "add" && word !== "replace" && word !== "remove")
    throw new ScimPatchError("invalidSyntax", "op must be add, replace or remove.");
  if (path !== undefined && typeof path !== "string")
    throw new ScimPatchError("invalidPath", "path must be a text.");
  const lower = path?.toLowerCase();
  const prefix = `${userUrn.toLowerCase()}:`;
  return {
    op: word,
    ...(lower === undefined ? {} : { path: lower.startsWith(prefix) ? lower.slice(prefix.length) : lower }),
    ...(value === undefined ? {} : { value }),
  };
}

/** `active` of an archived user is false already, and stays archived. */
function activeChange(active: boolean, before: User): UserChanges {
  if (active) return { status: "active" };
  return before.status === "active" ? { status: "suspended" } : {};
}

/** Some identity providers write booleans as text. */
function readBoolean(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  const word = typeof value === "string" ? value.toLowerCase() : "";
  if (word === "true" || word === "false") return word === "true";
  throw new ScimPatchError("invalidValue", "active must be true or false.");
}

function emailChange(value: unknown, attribute: string, before: User): UserChanges {
  const address = readText(email(), value, attribute);
  return emailKey(address) === emailKey(before.email)
    ? { email: address }
    : { email: address, emailVerified: false };
}

function readName(value: unknown, attribute: string): string {
  return readText(name(), value, attribute);
}

function nameOf(value: unknown): string {
  if (!isObject(value)) throw new ScimPatchError("invalidValue", "name must be an object.");
  const parts = lowerKeys(value);
  const formatted =
    parts.formatted ?? [parts.givenname, parts.familyname].filter((part) => part !== undefined).join(" ");
  return readName(formatted, "name");
}

/** The primary address of a list, or its only one. */
function primaryEmail(value: unknown): unknown {
  const list = (Array.isArray(value) ? value : [value]).filter(isObject).map(lowerKeys);
  const chosen = list.find((entry) => entry.primary === true) ?? (list.length === 1 ? list[0] : undefined);
  if (chosen === undefined)
    throw new ScimPatchError("invalidValue", "emails must hold one address, or mark one as primary.");
  return chosen.value;
}

function readText(schema: z.ZodType<string>, value: unknown, attribute: string): string {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new ScimPatchError(
    "invalidValue",
    `${attribute} ${result.error.issues.map((issue) => issue.message).join(", ")}.`,
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function lowerKeys(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toLowerCase(), item]));
}
