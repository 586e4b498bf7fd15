import { SchemaVersionError } from "../../model/errors.ts";
import {
  type AppliedMigration,
  type GrantPurpose,
  type Migration,
  type MigrationStatus,
  type Migrations,
  migrationName,
  migrationStatus,
  schemaProblem,
} from "../migrations.ts";
import { type Database, nowSql, type Run } from "./database.ts";
import { grantsSql } from "./grants.ts";
import { integer, optionalText } from "./rows.ts";
import { migrations } from "./schema.ts";

/** Creates, updates and checks the schema. Nothing else in this store changes it. */
export class PostgresMigrations implements Migrations {
  readonly #db: Database;
  readonly #known: readonly Migration[];

  constructor(db: Database, known: readonly Migration[] = migrations) {
    this.#db = db;
    this.#known = known;
  }

  async migrate(): Promise<readonly string[]> {
    return await this.#db.transaction(async (run) => {
      // Held until the transaction ends: two migrators take turns, and the second finds nothing to do.
      await run({
        text: "SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))::text",
        params: [`hookwell migrate ${this.#db.schema}`],
      });
      const status = migrationStatus(this.#known, await this.#applied(run));
      if (status.current > status.wanted && !status.usable) throw this.#unusable(status);
      const steps = this.#known.filter((step) => step.version > status.current);
      if (steps.length > 0 && !(await this.#schemaExists(run)))
        await run({ text: `CREATE SCHEMA ${this.#db.schema}`, params: [] });
      for (const step of steps) {
        await run({ text: this.#text(step), params: [] });
        await run({ text: this.#mark(step), params: [] });
      }
      return steps.map(migrationName);
    });
  }

  sql(): string {
    const steps = this.#known.map(
      (step) => `-- ${migrationName(step)}\n${this.#text(step)}${this.#mark(step)};\n`,
    );
    return `BEGIN;\nCREATE SCHEMA IF NOT EXISTS ${this.#db.schema};\n${steps.join("\n")}COMMIT;\n`;
  }

  async check(): Promise<MigrationStatus> {
    return migrationStatus(this.#known, await this.#applied((statement) => this.#db.run(statement)));
  }

  /** @throws SchemaVersionError when this build cannot work with the database as it is */
  async demandUsable(): Promise<void> {
    const status = await this.check();
    if (!status.usable) throw this.#unusable(status);
  }

  grant(role: string, purpose: GrantPurpose = "app"): string {
    return grantsSql(this.#db.schema, role, purpose);
  }

  async #applied(run: Run): Promise<AppliedMigration[]> {
    const found = await run({
      text: "SELECT to_regclass($1::text)::text AS name",
      params: [`${this.#db.schema}.migration`],
    });
    if (optionalText(found[0]!, "name") === undefined) return [];
    const rows = await run({
      text: `SELECT version, compatible_from FROM ${this.#db.schema}.migration ORDER BY version`,
      params: [],
    });
    return rows.map((row) => ({
      version: integer(row, "version"),
      compatibleFrom: integer(row, "compatible_from"),
    }));
  }

  async #schemaExists(run: Run): Promise<boolean> {
    const rows = await run({
      text: "SELECT to_regnamespace($1::text)::text AS name",
      params: [this.#db.schema],
    });
    return optionalText(rows[0]!, "name") !== undefined;
  }

  #text(step: Migration): string {
    return step.sql.replaceAll("@.", `${this.#db.schema}.`);
  }

  #mark(step: Migration): string {
    return `INSERT INTO ${this.#db.schema}.migration (version, name, applied_at, compatible_from)
VALUES (${step.version}, '${step.name}', ${nowSql("NULL")}, ${step.compatibleFrom})`;
  }

  #unusable(status: MigrationStatus): SchemaVersionError {
    return new SchemaVersionError(
      schemaProblem(status, `PostgreSQL schema ${this.#db.schema}`) ??
        "The schema of the database cannot be used.",
    );
  }
}
