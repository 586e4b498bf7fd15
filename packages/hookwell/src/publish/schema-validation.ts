import type { ValidationResult } from "../model/definition.ts";
import type { StandardResult, StandardSchema } from "./standard-schema.ts";

/** Runs a Standard Schema; answers a promise only when the schema does. */
export function validateWith(
  schema: StandardSchema,
  data: unknown,
): ValidationResult | Promise<ValidationResult> {
  const result = schema["~standard"].validate(data);
  return result instanceof Promise ? result.then(toResult) : toResult(result);
}

function toResult(result: StandardResult<unknown>): ValidationResult {
  if (!result.issues) return { ok: true, value: result.value };
  return {
    ok: false,
    problems: result.issues.map((issue) => ({
      pointer: (issue.path ?? []).map(pointerPart).join(""),
      message: issue.message,
    })),
  };
}

/** One step of a JSON pointer (RFC 6901). */
function pointerPart(step: PropertyKey | { readonly key: PropertyKey }): string {
  const key = String(typeof step === "object" ? step.key : step);
  return `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
