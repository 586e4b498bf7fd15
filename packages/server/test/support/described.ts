import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

interface Document {
  readonly paths?: Readonly<Record<string, object>>;
}

/** Checks answers against the OpenAPI document that the same server gives. */
export class Described {
  readonly #ajv: Ajv2020;
  readonly #document: Document;
  readonly #patterns: readonly { readonly path: string; readonly pattern: RegExp }[];
  readonly #compiled = new Map<string, ValidateFunction>();
  /** `get /v1/events 200`: what was checked so far. */
  readonly checked = new Set<string>();

  constructor(document: Document) {
    this.#document = document;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true });
    (addFormats as unknown as (ajv: Ajv2020) => void)(this.#ajv);
    this.#ajv.addSchema({ ...document, $id: "openapi" });
    this.#patterns = Object.keys(document.paths ?? {}).map((path) => ({
      path,
      pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
    }));
  }

  /** @throws when the answer is not as described. Answers of paths and methods that are not described pass. */
  check(method: string, pathname: string, status: number, contentType: string, text: string): void {
    const path = this.#patterns.find(({ pattern }) => pattern.test(pathname))?.path;
    if (path === undefined) return;
    const verb = method === "HEAD" ? "get" : method.toLowerCase();
    const item = this.#document.paths![path] as Readonly<Record<string, Operation | undefined>>;
    const operation = item[verb];
    if (!operation) return;
    const response = operation.responses[String(status)];
    if (!response) throw new Error(`${method} ${path} answered ${status}, which is not described: ${text}`);
    this.checked.add(`${verb} ${path} ${status}`);
    const media = contentType.split(";")[0]!;
    if (!response.content) {
      if (text !== "")
        throw new Error(`${method} ${path} ${status} has a body and none is described: ${text}`);
      return;
    }
    if (!response.content[media])
      throw new Error(
        `${method} ${path} ${status} is ${media}, described is ${Object.keys(response.content)}`,
      );
    if (!media.includes("json") || method === "HEAD") return;
    const validate = this.#validator([path, verb, "responses", String(status), "content", media, "schema"]);
    if (!validate(JSON.parse(text)))
      throw new Error(
        `${method} ${path} ${status} is not as described: ${this.#ajv.errorsText(validate.errors)}\n${text}`,
      );
  }

  #validator(steps: readonly string[]): ValidateFunction {
    const pointer = ["paths", ...steps]
      .map((step) => `/${encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))}`)
      .join("");
    const found = this.#compiled.get(pointer) ?? this.#ajv.compile({ $ref: `openapi#${pointer}` });
    this.#compiled.set(pointer, found);
    return found;
  }
}

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, unknown>> } | undefined>
  >;
}
