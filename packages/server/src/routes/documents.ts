import { z } from "@hono/zod-openapi";
import { documentationPage } from "../documentation-page.ts";
import type { Api } from "../http/api.ts";

const tag = "Description";

/** Added last: the document describes the routes added before it, and itself. */
export function addDocumentRoutes(api: Api): void {
  // Made at the first request and kept: the routes do not change after the start.
  let document: string | undefined;
  let page: string | undefined;

  api.open(
    "/openapi.json",
    {
      id: "getOpenApi",
      tag,
      summary: "This description, as OpenAPI 3.1",
      answers: {
        200: {
          description: "The document.",
          schema: z.record(z.string(), z.unknown()).openapi({ type: "object", additionalProperties: true }),
        },
      },
    },
    () => {
      document ??= JSON.stringify(api.document());
      return new Response(document, { headers: { "content-type": "application/json" } });
    },
  );

  api.open(
    "/docs",
    {
      id: "getDocs",
      tag,
      summary: "This description, to read",
      mediaType: "text/html",
      answers: { 200: { description: "A page without scripts or outside requests.", schema: z.string() } },
    },
    () => {
      page ??= documentationPage(api.document());
      return new Response(page, {
        headers: {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy":
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        },
      });
    },
  );
}
