import type { AppTransaction } from "../database/schema.ts";
import { type FieldProblem, ProblemError } from "../http/problem.ts";
import { emailKey, type User } from "./user.ts";
import { takenEmails, takenIds } from "./user-queries.ts";

// Well below the number of parameters that a statement of either database may have.
const chunk = 500;

/**
 * Looks for addresses and ids that are taken, among the users given and in the database, before any is written.
 * @throws ProblemError 409 naming each row
 */
export async function refuseTaken(
  trx: AppTransaction,
  users: readonly User[],
  at: (index: number) => string,
): Promise<void> {
  const emails = new Set<string>();
  const ids = new Set<string>();
  for (let start = 0; start < users.length; start += chunk) {
    const part = users.slice(start, start + chunk);
    const projectId = part[0]!.projectId;
    for (const row of await takenEmails(
      trx,
      projectId,
      part.map((user) => emailKey(user.email)),
    ))
      emails.add(JSON.stringify([row.tenantId, row.emailKey]));
    for (const id of await takenIds(
      trx,
      part.map((user) => user.id),
    ))
      ids.add(id);
  }
  const errors: FieldProblem[] = [];
  for (const [index, user] of users.entries()) {
    const email = JSON.stringify([user.tenantId ?? "", emailKey(user.email)]);
    if (emails.has(email)) errors.push({ pointer: `${at(index)}/email`, message: "is taken" });
    if (ids.has(user.id)) errors.push({ pointer: `${at(index)}/id`, message: "is taken" });
    emails.add(email);
    ids.add(user.id);
  }
  if (errors.length === 0) return;
  const emailTaken = errors.some((error) => error.pointer.endsWith("/email"));
  throw new ProblemError(
    emailTaken ? "email_taken" : "conflict",
    `Nothing was written: ${errors.map((error) => `${error.pointer} ${error.message}`).join(", ")}.`,
    { errors },
  );
}
