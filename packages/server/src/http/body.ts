import { type JsonValue, type Problem, parseJson, ValidationError } from "hookwell";
import { apiProblem, ProblemError } from "./problems.ts";

/**
 * Reads a JSON body; when it is optional, none at all is `{}`. Integers beyond 2^53 come back as bigint, so that event data keeps every digit.
 * @throws ProblemError 413 over `maxBytes`, 415 for another content type, 400 for what is not JSON in UTF-8
 */
export async function readJson(
  request: Request,
  maxBytes: number,
  mediaTypes: readonly string[],
  optional = false,
): Promise<JsonValue> {
  let bytes: Uint8Array | undefined;
  if (optional) {
    bytes = await readBytes(request, maxBytes);
    if (bytes.length === 0) return {};
  }
  const given = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (!mediaTypes.includes(given))
    throw apiProblem(
      "unsupported_media_type",
      `The body must be sent with content-type ${mediaTypes.join(" or ")}${given ? `, not ${given}` : ""}.`,
      { headers: { accept: mediaTypes.join(", ") } },
    );
  return parse(decode(bytes ?? (await readBytes(request, maxBytes))));
}

/** For routes without a body: refuses one that says something, because it would be ignored. */
export async function refuseBody(request: Request): Promise<void> {
  const text = decode(await readBytes(request, 1024)).trim();
  if (text !== "" && !/^\{\s*\}$/.test(text))
    throw apiProblem("unexpected_body", "This route takes no body; leave it out.");
}

async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = (): ProblemError =>
    apiProblem("request_too_large", `The body is over the limit of ${maxBytes} bytes.`, {
      headers: { connection: "close" },
    });
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    // Without a declared length the limit is only found while reading; what was read is dropped.
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw apiProblem("malformed_json", "The body is not valid UTF-8.");
  }
}

/** Deeper nesting is refused: nobody reads it, and writing it again would exhaust the stack. */
const maxDepth = 200;

function parse(text: string): JsonValue {
  try {
    if (isTooDeep(text))
      throw apiProblem("malformed_json", `The body is nested deeper than ${maxDepth} levels.`);
    return parseJson(text);
  } catch (error) {
    if (error instanceof ProblemError) throw error;
    if (error instanceof ValidationError)
      throw apiProblem("validation_failed", error.message, { problems: error.problems });
    const why = error instanceof Error ? error.message : String(error);
    throw apiProblem("malformed_json", `The body is not JSON: ${why}`);
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === backslash) index++;
      else if (code === quote) inString = false;
    } else if (code === quote) inString = true;
    else if (code === openBracket || code === openBrace) {
      if (++depth > maxDepth) return true;
    } else if (code === closeBracket || code === closeBrace) depth--;
  }
  return false;
}

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The faults a schema found, each with its JSON pointer. */
export function problemsOfIssues(
  issues: readonly SchemaIssue[],
  base: readonly PropertyKey[] = [],
): Problem[] {
  return issues.flatMap((issue): Problem[] => {
    const path = [...base, ...issue.path];
    if (issue.code === "unrecognized_keys")
      return (issue.keys ?? []).map((key) => ({
        pointer: pointerTo([...path, key]),
        message: "is not known",
      }));
    // Of the shapes a value may have, the one that it resembles says what is wrong with it.
    const branches = issue.code === "invalid_union" ? (issue.errors ?? []) : [];
    const isOther = (inner: SchemaIssue): boolean => inner.path.length === 0 && inner.code === "invalid_type";
    const nearest = branches.find((branch) => !branch.some(isOther)) ?? branches[0];
    if (nearest && nearest.length > 0) return problemsOfIssues(nearest, path);
    return [{ pointer: pointerTo(path), message: issue.message }];
  });
}

/** The part of a zod issue that is read here. */
export interface SchemaIssue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly errors?: readonly (readonly SchemaIssue[])[];
}

function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
