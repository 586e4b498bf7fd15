import { ConfigurationError, DuplicateIdError, type HookwellCore, type PagePosition } from "hookwell";

export interface FirstKey {
  /** The admin key: given by HOOKWELL_API_KEY, or made now. Undefined when one exists that only its owner knows. */
  readonly key: string | undefined;
  /** True when this call made it: print it, it cannot be shown again. */
  readonly made: boolean;
}

/**
 * Sees to it that somebody can use the API: a given key becomes an admin key if it is none yet; without one, and
 * while no valid admin key exists, one is made.
 * @throws ConfigurationError when the given key is a key already, with less than admin
 */
export async function firstAdminKey(
  hooks: Pick<HookwellCore, "keys" | "clock">,
  given: string | undefined,
): Promise<FirstKey> {
  if (given !== undefined) return { key: given, made: await adopt(hooks, given) };
  if (await hasAdminKey(hooks)) return { key: undefined, made: false };
  const { key } = await hooks.keys.create({ name: "first admin key", scopes: ["admin"] });
  return { key, made: true };
}

async function adopt({ keys }: Pick<HookwellCore, "keys">, given: string): Promise<boolean> {
  const isThere = async (): Promise<boolean> => {
    const known = await keys.authenticate(given);
    if (known && (!known.scopes.includes("admin") || known.projectId !== undefined))
      throw new ConfigurationError(
        `HOOKWELL_API_KEY is the key ${known.id}, which is not an admin key of all projects; choose another value.`,
      );
    return known !== undefined;
  };
  if (await isThere()) return false;
  try {
    await keys.create({ name: "HOOKWELL_API_KEY", scopes: ["admin"], key: given });
    return true;
  } catch (error) {
    // Two replicas that start together both find it missing.
    if (error instanceof DuplicateIdError && (await isThere())) return false;
    throw error;
  }
}

async function hasAdminKey({ keys, clock }: Pick<HookwellCore, "keys" | "clock">): Promise<boolean> {
  let after: PagePosition | undefined;
  do {
    const page: Awaited<ReturnType<typeof keys.list>> = await keys.list({ limit: 100, after });
    const found = page.items.some(
      ({ scopes, projectId, expiresAt }) =>
        scopes.includes("admin") && projectId === undefined && (!expiresAt || expiresAt > clock()),
    );
    if (found) return true;
    after = page.next;
  } while (after);
  return false;
}
