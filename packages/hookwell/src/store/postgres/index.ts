import type { PostgresOptions } from "./options.ts";
import { PostgresOutbox } from "./postgres-outbox.ts";

/**
 * A store in PostgreSQL (14 or newer), over a `pg` Pool that the application makes and ends:
 * `postgresStore({ pool: new pg.Pool({ connectionString }) })`. Run `hookwell migrate` once before.
 *
 * @throws ConfigurationError for an unusable schema name, EncryptionKeyError for malformed keys
 */
export function postgresStore(options: PostgresOptions): PostgresOutbox {
  const encryptionKeys = options.encryptionKeys ?? process.env.HOOKWELL_ENCRYPTION_KEYS;
  return new PostgresOutbox({ ...options, ...(encryptionKeys ? { encryptionKeys } : {}) });
}

export type { PgClient, PgPool, PgResult, PostgresOptions } from "./options.ts";
export { PostgresOutbox } from "./postgres-outbox.ts";
