import { z } from "@hono/zod-openapi";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const control = /[\u0000-\u001f\u007f-\u009f]/;

/** An id or a name: 1 to 255 characters, none of them a control character or half of a surrogate pair. */
export const name = z
  .string()
  .min(1, "must have at least 1 character")
  .max(255, "must have at most 255 characters")
  .refine((text) => !control.test(text), "must not contain control characters")
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode (it has a lone surrogate)");

/** Text for people: any characters but NUL, which PostgreSQL cannot store. */
export function text(maxLength: number): z.ZodString {
  return z
    .string()
    .max(maxLength, `must have at most ${maxLength} characters`)
    .refine((value) => !value.includes("\0"), "must not contain NUL")
    .refine((value) => value.isWellFormed(), "must be well-formed Unicode (it has a lone surrogate)");
}

export const eventType = z
  .string()
  .max(128)
  .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*$/, "must be lower-case words of a-z 0-9 _ joined by dots")
  .openapi({ example: "user.created" });

/** A moment in a query or a body, as the text that was given. */
export const timestamp = z.iso.datetime({
  offset: true,
  message: "must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
});

export const moment = timestamp
  .transform((value) => new Date(value))
  .openapi({
    type: "string",
    format: "date-time",
  });

/** A moment in an answer: UTC with milliseconds. */
export const answeredTime = z.iso.datetime({ offset: true });

/** Any JSON. Integers beyond 2^53 keep their digits. */
export const anyJson = z
  .unknown()
  .refine((value) => value !== undefined, "is missing")
  .openapi({
    type: ["object", "array", "string", "number", "boolean", "null"],
    description: "Any JSON; integers beyond 2^53 keep their digits.",
  });

/** `{id}` in a path. */
export const idParams = z.strictObject({
  id: name.openapi({ example: "sub_0198a6d2-7c1e-7d55-9f6b-2b1c6f9a4a10" }),
});

export const timeRange = {
  since: moment.optional().openapi({ description: "From this moment on." }),
  until: moment.optional().openapi({ description: "Before this moment." }),
};

export const orNull = (value: Date | undefined): string | null => value?.toISOString() ?? null;
