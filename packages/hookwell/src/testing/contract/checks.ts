import assert from "node:assert/strict";

/** The same value without undefined keys, and with bytes as text: what "equal results" means between stores. */
export function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  if (value instanceof Date || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, plain(item)]));
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, plain(item)]),
  );
}

/** Equal as {@link plain} values. */
export function same(actual: unknown, expected: unknown, message?: string): void {
  assert.deepEqual(plain(actual), plain(expected), message);
}

/** The keys that `expected` names are as it says; undefined = absent. */
export function like<T extends object>(
  actual: T | undefined,
  expected: { readonly [K in keyof T]?: unknown },
): void {
  assert.ok(actual !== undefined, "there is nothing to look at");
  const keys = Object.keys(expected) as (keyof T)[];
  same(Object.fromEntries(keys.map((key) => [key, actual[key]])), expected);
}

/** Rejects, or throws, with the stable error code. */
export async function refused(code: string, call: () => unknown): Promise<Error> {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.equal((error as Error & { code?: unknown }).code, code, error.stack ?? error.message);
    return error;
  }
  assert.fail(`expected ${code}, and nothing was refused`);
}

export const equal: typeof assert.equal = assert.equal;
export const ok: (value: unknown, message?: string) => asserts value = assert.ok;
