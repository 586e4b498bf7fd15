import { ConfigurationError } from "../model/errors.ts";
import { readSettings } from "../model/settings.ts";
import type { OutboxStore } from "../store/contract.ts";
import { type GrantPurpose, grantPurposes, type Migrations, schemaProblem } from "../store/migrations.ts";
import { readFlags } from "./arguments.ts";
import { type Command, exitCode, exitCodesHelp, type Terminal, UsageError } from "./command.ts";
import { loadConfig } from "./load-config.ts";
import { storeFromEnvironment } from "./store-from-environment.ts";

const help = `hookwell migrate: bring Hookwell's tables up to date

  hookwell migrate                  apply the pending steps, under a lock, all or nothing
  hookwell migrate --check          say whether this build can use the database; changes nothing
  hookwell migrate --sql            print every step as SQL, to read or to run by hand
  hookwell migrate --grant <role>   print the SQL that lets a role use the tables (PostgreSQL)

Options
  --for <purpose>   with --grant, what the role is for, and no more:
                      app       emit, manage, dispatch and deliver; the default
                      capture   emit only: an application whose deliveries run elsewhere
                      worker    dispatch and deliver only: hookwell worker
                      migrator  hookwell migrate; it then owns the tables and may run the grants of the others
  --config <file>   the database of the instance that this module exports as \`hooks\`
  --help

The database is HOOKWELL_DATABASE_URL or DATABASE_URL (PostgreSQL), else SQLite in HOOKWELL_DATA_DIR (./data).
Run it once before the first start on PostgreSQL and with each new release; SQLite does it by itself in
\`hookwell serve\`. The role that runs it needs the right to create a schema. Older and newer releases go on running
while and after it runs.

${exitCodesHelp}  --check answers 1 when the database cannot be used as it is
`;

export const migrate: Command = {
  name: "migrate",
  summary: "create or update the tables, print their SQL, or check them",
  help,
  async run(args, terminal) {
    const flags = readFlags(args, {
      sql: { type: "boolean" },
      check: { type: "boolean" },
      grant: { type: "string" },
      for: { type: "string" },
      config: { type: "string" },
    });
    const verbs = [flags.sql, flags.check, flags.grant !== undefined].filter(Boolean);
    if (verbs.length > 1) throw new UsageError("Give one of --sql, --check and --grant.");
    if (flags.for !== undefined && flags.grant === undefined)
      throw new UsageError("--for says what the role of --grant is for; give both.");
    const purpose = purposeOf(flags.for ?? "app");
    const opened = await openMigrations(terminal, flags.config, !flags.sql && !flags.check);
    try {
      if (flags.sql) return printSql(opened, terminal);
      if (flags.grant !== undefined) return printGrant(opened, flags.grant, purpose, terminal);
      return await (flags.check ? check(opened, terminal) : apply(opened, terminal));
    } finally {
      await opened.close();
    }
  },
};

interface Opened {
  readonly migrations: Migrations;
  readonly description: string;
  close(): Promise<void>;
}

async function openMigrations(
  terminal: Terminal,
  config: string | undefined,
  makeDirectory: boolean,
): Promise<Opened> {
  if (config !== undefined) {
    const hooks = await loadConfig(config);
    const { migrations } = hooks.store as OutboxStore & { readonly migrations?: Migrations };
    if (!migrations)
      throw new ConfigurationError(
        `The store of ${config} (${hooks.store.dialect}) has no tables to migrate.`,
      );
    return { migrations, description: `The database of ${config}`, close: () => hooks.close() };
  }
  const settings = readSettings(terminal.environment);
  const opened = await storeFromEnvironment(settings, { migrate: false, makeDirectory });
  return {
    migrations: opened.migrations,
    description: opened.description,
    close: async () => {
      await opened.store.close();
      await opened.close();
    },
  };
}

async function apply({ migrations, description }: Opened, terminal: Terminal): Promise<number> {
  const applied = await migrations.migrate();
  for (const name of applied) terminal.print(`applied ${name}`);
  terminal.print(
    applied.length > 0 ? `${description} is up to date.` : `${description} was up to date; nothing changed.`,
  );
  return exitCode.ok;
}

async function check({ migrations, description }: Opened, terminal: Terminal): Promise<number> {
  const status = await migrations.check();
  const problem = schemaProblem(status, description);
  terminal.print(problem ?? `${description} has schema version ${status.current} and can be used.`);
  return problem ? exitCode.failed : exitCode.ok;
}

function printSql({ migrations }: Opened, terminal: Terminal): number {
  terminal.print(migrations.sql().trimEnd());
  return exitCode.ok;
}

function purposeOf(given: string): GrantPurpose {
  const purpose = grantPurposes.find((known) => known === given);
  if (purpose === undefined)
    throw new UsageError(`--for is one of ${grantPurposes.join(", ")}, not "${given}".`);
  return purpose;
}

function printGrant(
  { migrations, description }: Opened,
  role: string,
  purpose: GrantPurpose,
  terminal: Terminal,
): number {
  if (!migrations.grant)
    throw new UsageError(`--grant is for PostgreSQL, and this is ${description}; set HOOKWELL_DATABASE_URL.`);
  if (role === "") throw new UsageError("--grant needs the name of a role.");
  terminal.print(migrations.grant(role, purpose).trimEnd());
  return exitCode.ok;
}
