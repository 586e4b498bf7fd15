import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const guides = readdirSync(join(root, "docs/guides")).map((name) => `docs/guides/${name}`);
const pages = ["README.md", "packages/hookwell/README.md", "packages/server/README.md", ...guides];
const sources = (directory: string): string[] =>
  readdirSync(join(root, directory), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => read(join(directory, name)));
/** The formatter lays a block of a page out by itself: less indented, so with other line breaks. */
const words = (text: string): string => text.replace(/\s+/g, "").replace(/,(?=[)\]}])/g, "");
const programs = [...sources("examples"), ...sources("apps/appointments/src")].map(words);

test.each(pages)(
  "every TypeScript block of %s stands, word for word, in examples/ or the reference application",
  (page) => {
    for (const [, block] of read(page).matchAll(/```ts\n([\s\S]*?)```/g))
      expect(
        programs.some((program) => program.includes(words(block!))),
        `this block of ${page}:\n${block}`,
      ).toBe(true);
  },
);

test("pages only link to files that exist", () => {
  for (const page of pages)
    for (const [, target] of read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g))
      expect(
        () => readdirOrRead(join(root, page, "..", target!)),
        `${page} links to ${target}`,
      ).not.toThrow();
});

function readdirOrRead(path: string): void {
  try {
    readFileSync(path);
  } catch {
    readdirSync(path);
  }
}
