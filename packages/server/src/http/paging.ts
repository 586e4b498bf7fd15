import { z } from "@hono/zod-openapi";
import type { Page, PagePosition } from "hookwell";
import { decodeCursor } from "hookwell/environment";
import { invalidRequest } from "./problems.ts";

export { encodeCursor, pageToJson as pageAnswer } from "hookwell/environment";

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
    : { limit: query.limit, after: positionOf(query.cursor) };
}

export const emptyPage = { items: [], next_cursor: null };

function positionOf(cursor: string): PagePosition {
  const position = decodeCursor(cursor);
  if (position) return position;
  throw invalidRequest([{ pointer: "/cursor", message: "is not the next_cursor of a page" }]);
}
