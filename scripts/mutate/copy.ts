import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { root } from "./items.ts";
import type { Mutation } from "./mutation.ts";

const skipped = new Set(["node_modules", ".git", "dist", "data"]);
const ownPackages = {
  hookwell: "packages/hookwell",
  "@hookwell/server": "packages/server",
  "@hookwell/appointments": "apps/appointments",
};

/** Copies everything that is tested to a new folder, where our own packages are those of the copy. */
export function copyOfCode(): string {
  const copy = mkdtempSync(join(tmpdir(), "hookwell-mutate-"));
  cpSync(root, copy, { recursive: true, filter: (path) => path === root || !skipped.has(basename(path)) });
  const modules = join(copy, "node_modules");
  mkdirSync(join(modules, "@hookwell"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== "hookwell" && name !== "@hookwell" && !name.startsWith("."))
      symlinkSync(join(root, "node_modules", name), join(modules, name));
  for (const [name, folder] of Object.entries(ownPackages))
    symlinkSync(join(copy, folder), join(modules, name));
  return copy;
}

/** Changes the line, and answers how to change it back. @throws Error when it is not there once */
export function plant(copy: string, { file, from, to }: Mutation): () => void {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} must have this once: ${from}`);
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
  return () => writeFileSync(path, text);
}
