import { type Scope, scopeMeanings, scopes } from "./http/scopes.ts";

/** The parts of an OpenAPI document that the page shows. */
interface Document {
  readonly info: { readonly title: string; readonly description?: string };
  readonly servers?: readonly { readonly url: string }[];
  readonly paths?: Readonly<Record<string, object>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, object>> };
}

interface Operation {
  readonly tags?: readonly string[];
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly additionalProperties?: boolean | Schema;
}

const methods = ["get", "post", "patch", "delete"] as const;

/** The API description as one HTML page: no script, and nothing loaded from elsewhere. */
export function documentationPage(document: Document): string {
  const groups = new Map<string, string[]>();
  for (const [path, item] of Object.entries(document.paths ?? {}))
    for (const method of methods) {
      const operation = (item as Readonly<Record<string, Operation | undefined>>)[method];
      if (!operation) continue;
      const tag = operation.tags?.[0] ?? "Other";
      groups.set(tag, [...(groups.get(tag) ?? []), operationSection(method, path, operation)]);
    }
  const schemas = Object.entries(document.components?.schemas ?? {});
  const base = document.servers?.[0]?.url ?? "/";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(document.info.title)} API</title><style>${style}</style></head><body>
<h1>${escaped(document.info.title)} API</h1>
<p>${escaped(document.info.description ?? "")} All paths are under <code>${escaped(base)}</code>; the same description
as OpenAPI 3.1 is at <code>openapi.json</code> beside this page.</p>
<p>Send a key as <code>Authorization: Bearer &lt;key&gt;</code>. A key has scopes:</p>
<dl>${scopes.map((scope: Scope) => `<dt>${scope}</dt><dd>${escaped(scopeMeanings[scope])}</dd>`).join("")}</dl>
<p>Errors are <code>application/problem+json</code> with a stable <code>code</code>, the <code>request_id</code>, and
<code>errors</code> that point at each field.</p>
${[...groups].map(([tag, sections]) => `<h2>${escaped(tag)}</h2>${sections.join("")}`).join("\n")}
<h2>Schemas</h2>
${schemas.map(([name, schema]) => `<section id="${escaped(name)}"><h3>${escaped(name)}</h3>${fieldTable(schema as Schema)}</section>`).join("\n")}
</body></html>
`;
}

function operationSection(method: string, path: string, operation: Operation): string {
  const parameters = (operation.parameters ?? []).map(
    (parameter) =>
      `<tr><td><code>${escaped(parameter.name)}</code>${parameter.required ? " (required)" : ""}</td><td>${escaped(parameter.in)}</td><td>${typeOf(parameter.schema)}</td><td>${escaped(parameter.description ?? parameter.schema?.description ?? "")}</td></tr>`,
  );
  const answers = Object.entries(operation.responses).map(
    ([status, { description, content }]) =>
      `<tr><td>${escaped(status)}</td><td>${escaped(description)}</td><td>${contentOf(content)}</td></tr>`,
  );
  const description = (operation.description ?? "")
    .split("\n\n")
    .filter(Boolean)
    .map((paragraph) => `<p>${escaped(paragraph)}</p>`)
    .join("");
  return `<section id="${escaped(operation.operationId ?? "")}"><h3><b>${method.toUpperCase()}</b> <code>${escaped(path)}</code></h3>
<p>${escaped(operation.summary ?? "")}</p>${description}
${parameters.length > 0 ? `<table><tr><th>Parameter</th><th>In</th><th>Type</th><th></th></tr>${parameters.join("")}</table>` : ""}
${operation.requestBody ? `<p>Body: ${contentOf(operation.requestBody.content)}</p>` : ""}
<table><tr><th>Status</th><th></th><th>Body</th></tr>${answers.join("")}</table></section>`;
}

function contentOf(content: Content | undefined): string {
  return Object.entries(content ?? {})
    .map(([type, { schema }]) => `${typeOf(schema)} <small>${escaped(type)}</small>`)
    .join("<br>");
}

function fieldTable(schema: Schema): string {
  const required = new Set(schema.required);
  const rows = Object.entries(schema.properties ?? {}).map(
    ([name, property]) =>
      `<tr><td><code>${escaped(name)}</code>${required.has(name) ? "" : " (optional)"}</td><td>${typeOf(property)}</td><td>${escaped(property.description ?? "")}</td></tr>`,
  );
  return rows.length > 0 ? `<table>${rows.join("")}</table>` : `<p>${typeOf(schema)}</p>`;
}

function typeOf(schema: Schema | undefined): string {
  if (!schema) return "";
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1)!;
    return `<a href="#${escaped(name)}">${escaped(name)}</a>`;
  }
  const several = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (several) return several.map(typeOf).join(schema.allOf ? " and " : " or ");
  if (schema.enum) return schema.enum.map((value) => `<code>${escaped(String(value))}</code>`).join(" ");
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  if (schema.properties)
    return `{ ${Object.entries(schema.properties)
      .map(([name, property]) => `${escaped(name)}: ${typeOf(property)}`)
      .join(", ")} }`;
  if (typeof schema.additionalProperties === "object") return `map of ${typeOf(schema.additionalProperties)}`;
  const type = typeof schema.type === "string" ? schema.type : (schema.type ?? []).join(" or ");
  return escaped(schema.format ? `${type} (${schema.format})` : type);
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
section { border-top: 1px solid #8884; padding: .5rem 0 }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-top: 1px solid #8882 }
code { font: .9em ui-monospace, monospace }
dt { font-weight: 600 }
h3 { margin: .5rem 0 }`;
