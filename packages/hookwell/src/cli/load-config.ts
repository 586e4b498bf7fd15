import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigurationError } from "../model/errors.ts";
import type { HookwellCore } from "../publish/surface.ts";

/**
 * Loads the application's own instance: the export `hooks` (or default) of a module such as hookwell.config.ts.
 * @throws ConfigurationError when there is none
 */
export async function loadConfig(path: string): Promise<HookwellCore> {
  const file = resolve(path);
  if (!existsSync(file)) throw new ConfigurationError(`There is no file ${path} (--config).`);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION")
      throw new ConfigurationError(
        `This Node (${process.version}) cannot load ${path}; use Node 22.18 or newer, or give --config a .js file.`,
      );
    throw error;
  }
  for (const candidate of [module.hooks, module.default]) if (isHookwell(candidate)) return candidate;
  throw new ConfigurationError(
    `${path} exports no instance; it needs \`export const hooks = createHookwell({ … })\`.`,
  );
}

function isHookwell(value: unknown): value is HookwellCore {
  if (typeof value !== "object" || value === null) return false;
  const core = value as Partial<HookwellCore>;
  return typeof core.start === "function" && typeof core.ready === "function" && core.store !== undefined;
}
