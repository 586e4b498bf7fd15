import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const types = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
} as const;

const names = [
  "pages.css",
  "icon.svg",
  "schedule.js",
  "manage.js",
  "picker.js",
  "slots.js",
  "zones.js",
  "times.js",
  "messages.js",
  "requests.js",
  "elements.js",
] as const;

export interface PageAsset {
  readonly type: string;
  readonly body: string;
}

const assets = new Map<string, PageAsset>(names.map((name) => [name, read(name)]));

/** Changes whenever a file does, so that the files may be kept for ever under an address that has it. */
const version = createHash("sha256")
  .update(JSON.stringify([...assets]))
  .digest("hex")
  .slice(0, 16);

/** Path of a file of the pages. */
export function assetPath(name: (typeof names)[number]): string {
  return `/pages/${version}/${name}`;
}

/** A file of the pages; `isCurrent`: it is what the version in its address says. */
export function findAsset(
  ofVersion: string,
  name: string,
): (PageAsset & { readonly isCurrent: boolean }) | undefined {
  const asset = assets.get(name);
  return asset && { ...asset, isCurrent: ofVersion === version };
}

function read(name: (typeof names)[number]): PageAsset {
  const type = types[name.slice(name.lastIndexOf(".") + 1) as keyof typeof types];
  return { type, body: readFileSync(new URL(`./browser/${name}`, import.meta.url), "utf8") };
}
