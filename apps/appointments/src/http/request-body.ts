import type { Context } from "hono";
import type { z } from "zod";
import { type FieldProblem, invalid, ProblemError } from "./problem.ts";

const jsonTypes = /^application\/(?:[a-z0-9.-]+\+)?json\s*(?:;|$)/i;

/** The request's body as JSON. @throws ProblemError 415 or 400 */
export async function readJson(context: Context): Promise<unknown> {
  const type = context.req.header("content-type") ?? "";
  if (!jsonTypes.test(type))
    throw new ProblemError(
      "unsupported_media_type",
      "Send the body as JSON, with Content-Type: application/json.",
    );
  const bytes = await context.req.arrayBuffer();
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid([{ pointer: "", message: "is not JSON in UTF-8" }]);
  }
}

/** Checks a value against a schema. @throws ProblemError 400 naming each field by its JSON pointer */
export function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalid(result.error.issues.flatMap(fieldProblems));
}

function fieldProblems(issue: z.core.$ZodIssue): FieldProblem[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({
      pointer: pointer([...issue.path, key]),
      message: "is not a field of this request",
    }));
  return [{ pointer: pointer(issue.path), message: issue.message }];
}

function pointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
