import { html } from "hono/html";
import { assetPath } from "./page-assets.ts";

export type Html = ReturnType<typeof html>;

/** Headers of every page: scripts, styles and requests of this application only, no inline code, no forms elsewhere. */
export const pageHeaders = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  // The application sets these three for the paths of tokens; a page must not depend on where it is mounted.
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Robots-Tag": "noindex",
} as const;

/** A whole page. Every text that somebody gave is escaped by `html`. */
export function pageLayout(page: {
  readonly title: string;
  readonly main: Html;
  readonly script?: "schedule.js" | "manage.js";
}): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${page.title}</title>
<link rel="icon" href="${assetPath("icon.svg")}">
<link rel="stylesheet" href="${assetPath("pages.css")}">
${page.script === undefined ? "" : html`<script type="module" src="${assetPath(page.script)}"></script>`}
</head>
<body>
<main>${page.main}</main>
</body>
</html>`;
}
