import { invalid } from "./problem.ts";

/** Position in a list that runs newest first by (time, id). */
export interface Position {
  readonly at: string;
  readonly id: string;
}

export interface PageRequest {
  readonly limit: number;
  readonly after?: Position;
}

/** Reads `limit` (1 to 100, default 50) and `cursor`. @throws ProblemError 400 */
export function readPage(query: Readonly<Record<string, string>>): PageRequest {
  const limit = query.limit === undefined ? 50 : Number(query.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw invalid([{ pointer: "/limit", message: "must be a whole number from 1 to 100" }]);
  return query.cursor === undefined ? { limit } : { limit, after: readCursor(query.cursor) };
}

export function writeCursor(position: Position): string {
  return Buffer.from(JSON.stringify([position.at, position.id]), "utf8").toString("base64url");
}

function readCursor(cursor: string): Position {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(parts) && parts.length === 2) {
      const [at, id] = parts as unknown[];
      if (typeof at === "string" && typeof id === "string" && !(at + id).includes("\u0000"))
        return { at, id };
    }
  } catch {
    // Falls through to the refusal.
  }
  throw invalid([{ pointer: "/cursor", message: "is not a next_cursor of this list" }]);
}
