import type { Row } from "../../adapters/seam.ts";

// Client libraries disagree about integers: int8 comes as text, number or bigint. Read all three.

/** A text column that is never null. */
export function text(row: Row, name: string): string {
  return String(row[name]);
}

/** A text column; null = absent. */
export function optionalText(row: Row, name: string): string | undefined {
  const value = row[name];
  return value === null || value === undefined ? undefined : String(value);
}

/** A text column where '' stands for absent. */
export function nonEmpty(row: Row, name: string): string | undefined {
  return optionalText(row, name) || undefined;
}

export function integer(row: Row, name: string): number {
  return Number(row[name]);
}

export function optionalInteger(row: Row, name: string): number | undefined {
  const value = row[name];
  return value === null || value === undefined ? undefined : Number(value);
}

/** A column of epoch milliseconds. */
export function date(row: Row, name: string): Date {
  return new Date(integer(row, name));
}

export function optionalDate(row: Row, name: string): Date | undefined {
  const ms = optionalInteger(row, name);
  return ms === undefined ? undefined : new Date(ms);
}

/** A boolean selected as 0 or 1. */
export function flag(row: Row, name: string): boolean {
  return Number(row[name]) === 1;
}

/** A column that holds JSON text of a known shape, written by this store. */
export function json<T>(row: Row, name: string): T {
  return JSON.parse(text(row, name)) as T;
}

export function optionalJson<T>(row: Row, name: string): T | undefined {
  const value = optionalText(row, name);
  return value === undefined ? undefined : (JSON.parse(value) as T);
}

/** A column selected with `encode(…, 'base64')`. */
export function bytes(row: Row, name: string): Uint8Array {
  return new Uint8Array(Buffer.from(text(row, name), "base64"));
}

/** The same object without the keys whose value is undefined. */
export function defined<T extends object>(value: { [Key in keyof T]: T[Key] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as T;
}
