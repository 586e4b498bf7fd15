import type { Statement } from "../../adapters/seam.ts";

/**
 * Reading of columns. Rows also come from the application's client, which may answer integers as number, bigint
 * or text.
 */
export function integer(value: unknown): number {
  return Number(value);
}

export function optionalInteger(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : String(value);
}

export function optionalText(value: unknown): string | undefined {
  return value === null || value === undefined ? undefined : text(value);
}

/** A project, tenant, owner or type: kept as the empty text where it is absent. */
export function optionalName(value: unknown): string | undefined {
  return optionalText(value) || undefined;
}

export function date(value: unknown): Date {
  return new Date(Number(value));
}

export function optionalDate(value: unknown): Date | undefined {
  return value === null || value === undefined ? undefined : date(value);
}

export function optionalJson<T>(value: unknown): T | undefined {
  return value === null || value === undefined ? undefined : (JSON.parse(text(value)) as T);
}

/**
 * An object whose undefined properties are left out, so that absent is absent. Copied: an object from which
 * properties are deleted is slow to use ever after.
 */
export function present<T extends object>(value: { [Key in keyof T]: T[Key] | undefined }): T {
  const copy: Partial<T> = {};
  for (const key in value) if (value[key] !== undefined) copy[key] = value[key];
  return copy as T;
}

/** A statement of a program. Numbers travel as text, so the SQL casts them. */
export function statement(sql: string, ...params: (string | number | null)[]): Statement {
  return { text: sql, params: params.map((value) => (typeof value === "number" ? String(value) : value)) };
}
