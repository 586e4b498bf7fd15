/** One numbered step of the schema, embedded as text so that bundlers cannot lose it. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /**
   * The first schema version whose code can use a database that has this step. A step that only adds keeps the
   * value of the step before; a step that takes something away raises it, one release after the code stopped
   * needing it.
   */
  readonly compatibleFrom: number;
  /** Statements, each ended by a semicolon and a line end. */
  readonly sql: string;
}

/** What a database has, and what this build wants. */
export interface MigrationStatus {
  /** Version of the database; 0 = no tables of Hookwell. */
  readonly current: number;
  /** Version this build was written for. */
  readonly wanted: number;
  /** Names of the steps `migrate()` would run. */
  readonly pending: readonly string[];
  /** True when this build can work with the database as it is. */
  readonly usable: boolean;
}

/** What a database role is for: all of it, emitting alone, dispatching and delivering, or changing the schema. */
export const grantPurposes = ["app", "capture", "worker", "migrator"] as const;
export type GrantPurpose = (typeof grantPurposes)[number];

/** The four verbs of a schema. */
export interface Migrations {
  /**
   * Runs the pending steps under a lock, all or nothing; answers their names.
   * @throws SchemaVersionError when the database is of a newer version that this build cannot use
   */
  migrate(): Promise<readonly string[]>;
  /** Every step as SQL text, to read or to run by hand. */
  sql(): string;
  /** Reads and changes nothing. */
  check(): Promise<MigrationStatus>;
  /** PostgreSQL: the statements that let a role do what it is for (default `app`), and no more. */
  grant?(role: string, purpose?: GrantPurpose): string;
}

/** What the table of applied steps says. */
export interface AppliedMigration {
  readonly version: number;
  readonly compatibleFrom: number;
}

/** Compares the applied steps with the known ones. */
export function migrationStatus(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): MigrationStatus {
  const wanted = known.at(-1)?.version ?? 0;
  const current = Math.max(0, ...applied.map((step) => step.version));
  const compatibleFrom = Math.max(0, ...applied.map((step) => step.compatibleFrom));
  return {
    current,
    wanted,
    pending: known.filter((step) => step.version > current).map(migrationName),
    usable: current >= wanted && compatibleFrom <= wanted,
  };
}

/** `0001_initial`. */
export function migrationName(step: Pick<Migration, "version" | "name">): string {
  return `${String(step.version).padStart(4, "0")}_${step.name}`;
}

/** Why a database cannot be used and what to do, or undefined when it can. */
export function schemaProblem(status: MigrationStatus, database: string): string | undefined {
  if (status.usable) return undefined;
  if (status.current > status.wanted)
    return `${database} has schema version ${status.current}, which this build (version ${status.wanted}) cannot use; run the release of hookwell that made it, or a newer one.`;
  if (status.current === 0)
    return `${database} has no Hookwell tables yet; run \`hookwell migrate\` (or \`store.migrations.migrate()\`) once before starting.`;
  return `${database} has schema version ${status.current} and this build needs ${status.wanted}; run \`hookwell migrate\` (or \`store.migrations.migrate()\`) to apply ${status.pending.join(", ")}.`;
}
