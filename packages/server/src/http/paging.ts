import { z } from "@hono/zod-openapi";
import type { Page, PageOf, PagePosition } from "hookwell";
import { invalidRequest } from "./problems.ts";

/** The two query parameters of every list. */
export const pageQuery = {
  limit: z
    .string()
    .regex(/^\d{1,3}$/, "must be a whole number from 1 to 100")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 100, "must be a whole number from 1 to 100")
    .default(50)
    .openapi({ type: "integer", minimum: 1, maximum: 100, default: 50, pattern: undefined }),
  cursor: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .openapi({ description: "`next_cursor` of the page before. Opaque." }),
};

/** Schema of one page. */
export function pageOf<Item extends z.ZodType>(
  item: Item,
): z.ZodObject<{ items: z.ZodArray<Item>; next_cursor: z.ZodNullable<z.ZodString> }> {
  return z.strictObject({
    items: z.array(item),
    next_cursor: z.string().nullable().openapi({ description: "Null on the last page." }),
  });
}

/** @throws ProblemError 400 for a cursor that no page gave */
export function pageFrom(query: { readonly limit: number; readonly cursor?: string }): Page {
  return query.cursor === undefined
    ? { limit: query.limit }
    : { limit: query.limit, after: decodeCursor(query.cursor) };
}

export function pageAnswer<T, Json>(page: PageOf<T>, toJson: (item: T) => Json): unknown {
  return { items: page.items.map(toJson), next_cursor: page.next ? encodeCursor(page.next) : null };
}

export const emptyPage = { items: [], next_cursor: null };

/** Time and id together: rows of equal time are neither skipped nor repeated. */
export function encodeCursor(position: PagePosition): string {
  return Buffer.from(JSON.stringify([position.at.getTime(), position.id])).toString("base64url");
}

function decodeCursor(cursor: string): PagePosition {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(value) && value.length === 2) {
      const [at, id] = value as unknown[];
      const time = typeof at === "number" && Number.isSafeInteger(at) ? new Date(at) : undefined;
      // A NUL never comes from a page of ours, and PostgreSQL could not compare with it.
      if (time && !Number.isNaN(time.getTime()) && typeof id === "string" && !id.includes("\0"))
        return { at: time, id };
    }
  } catch {
    // Not base64 of JSON: the same answer as for any other text that no page gave.
  }
  throw invalidRequest([{ pointer: "/cursor", message: "is not the next_cursor of a page" }]);
}
