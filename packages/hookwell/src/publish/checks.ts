import { type Problem, ValidationError } from "../model/errors.ts";
import type { Page } from "../store/contract.ts";

const defaultLimit = 50;
const mostPerPage = 100;

/** The page asked for, 50 items unless said. @throws ValidationError when `limit` is not 1 to 100. */
export function checkedPage(page: Partial<Page> = {}): Page {
  const limit = page.limit ?? defaultLimit;
  if (!Number.isInteger(limit) || limit < 1 || limit > mostPerPage)
    throw new ValidationError([
      { pointer: "/limit", message: `must be a whole number from 1 to ${mostPerPage}` },
    ]);
  return { limit, ...(page.after && { after: page.after }) };
}

/**
 * Runs every check and throws one ValidationError with all the problems, so that a form can show them at once.
 * The only problem keeps its own error, such as BlockedAddressError.
 */
export function checkAll(checks: readonly (() => void)[]): void {
  const problems: Problem[] = [];
  let only: ValidationError | undefined;
  for (const check of checks) {
    try {
      check();
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      only = problems.length === 0 ? error : undefined;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw only ?? new ValidationError(problems);
}

/** Free text of at most `most` characters, without NUL. */
export function checkText(value: unknown, field: string, most: number): void {
  const message = textProblem(value, most);
  if (message) throw new ValidationError([{ pointer: `/${field}`, message }]);
}

function textProblem(value: unknown, most: number): string | undefined {
  if (typeof value !== "string") return "must be text";
  if (value.length > most) return `must be at most ${most} characters`;
  if (value.includes("\u0000")) return "must not contain NUL";
  return value.isWellFormed() ? undefined : "must be well-formed Unicode (it has a lone surrogate)";
}

export function checkWhole(value: unknown, field: string, least: number, most: number): void {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most)
    throw new ValidationError([
      { pointer: `/${field}`, message: `must be a whole number from ${least} to ${most}` },
    ]);
}
