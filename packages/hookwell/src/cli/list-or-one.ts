import { UsageError } from "./command.ts";
import { nearest } from "./suggest.ts";

/** Options that also hold when one thing is shown. */
const alsoForOne = new Set(["config", "json", "dev", "project"]);

/**
 * `hookwell events`, `hookwell events list`, `hookwell events <id>` and `hookwell events get <id>` are one command:
 * the id, or undefined for the list. A word near to one of `verbs` is taken for a slip.
 * @throws UsageError
 */
export function listOrOne(
  positionals: readonly string[],
  flags: Readonly<Record<string, unknown>>,
  what: string,
  verbs: readonly string[],
): string | undefined {
  const [first, ...rest] = positionals;
  if (first === undefined || (first === "list" && rest.length === 0)) return undefined;
  const [id, more] = first === "get" ? rest : positionals;
  if (id === undefined) throw new UsageError(`The id of ${what} is missing.`);
  const near = id.includes("_") ? undefined : nearest(id, verbs);
  if (near !== undefined) throw new UsageError(`Did you mean \`${near}\`?`);
  if (more !== undefined) throw new UsageError(`One id is enough; ${JSON.stringify(more)} is too much.`);
  const filter = Object.keys(flags).find((name) => !alsoForOne.has(name));
  if (filter !== undefined) throw new UsageError(`--${filter} is for the list, and an id was given.`);
  return id;
}
