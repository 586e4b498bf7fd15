import { type GrantPurpose, grantPurposes } from "../migrations.ts";

const everything = "SELECT, INSERT, UPDATE, DELETE";

/** What a role may do with the tables, by what it is for. Row locks need UPDATE. */
const tablePrivileges: Readonly<Record<"capture" | "worker", readonly (readonly [string, string])[]>> = {
  capture: [
    ["SELECT", "migration, meta, subscription, subscription_filter"],
    // DELETE takes back the first events of a call whose later one is refused.
    ["SELECT, INSERT, DELETE", "event, body, delivery"],
    ["INSERT", "lane_wake"],
  ],
  worker: [
    ["SELECT", "migration"],
    // The check value of an encryption key that is new.
    ["SELECT, INSERT, UPDATE", "meta"],
    // Disabling what only fails, counting replays, and pruning what is over.
    ["SELECT, UPDATE, DELETE", "subscription, replay, idempotent_request"],
    ["SELECT, DELETE", "subscription_filter, endpoint"],
    ["SELECT, UPDATE", "hold"],
    [
      everything,
      "event, body, delivery, attempt, lane, lane_wake, minute_count, hold_lane, replay_missing, replay_tally",
    ],
  ],
};

const purposeText: Readonly<Record<GrantPurpose, string>> = {
  app: "To emit, manage, dispatch and deliver (an application that does all of it, `hookwell serve`, operators' commands).",
  capture: "To emit, and nothing else (an application whose deliveries run elsewhere).",
  worker: "To dispatch and deliver (`hookwell worker`): no API keys, no new subscriptions.",
  migrator:
    "To make and change the tables (`hookwell migrate`). What it makes it owns, and it may run the grants of the others.",
};

/** The statements that let a role do what `purpose` says and no more, with a comment on each part. */
export function grantsSql(schema: string, role: string, purpose: GrantPurpose): string {
  const to = `"${role.replaceAll('"', '""')}"`;
  const others = grantPurposes.filter((other) => other !== purpose).join(", ");
  const head = `-- ${purposeText[purpose]}\n-- For another kind of role: --for ${others}.\n`;
  if (purpose === "migrator") return head + migratorSql(to);
  return `${head}-- Run it again after a migration: what is new needs it too.
GRANT USAGE ON SCHEMA ${schema} TO ${to};
-- Everybody may run a new function, unless the owner of the database has changed that.
GRANT EXECUTE ON FUNCTION ${schema}.capture_event TO ${to};
${tablesSql(schema, to, purpose)}`;
}

function tablesSql(schema: string, to: string, purpose: "app" | "capture" | "worker"): string {
  if (purpose === "app")
    return `GRANT ${everything} ON ALL TABLES IN SCHEMA ${schema} TO ${to};
REVOKE INSERT, UPDATE, DELETE ON ${schema}.migration FROM ${to};
`;
  return tablePrivileges[purpose]
    .map(([privileges, tables]) => {
      const names = tables.split(", ").map((table) => `${schema}.${table}`);
      return `GRANT ${privileges} ON ${names.join(", ")} TO ${to};\n`;
    })
    .join("");
}

/** The name of the database is not known here, and GRANT takes no expression. */
function migratorSql(to: string): string {
  return `DO $hookwell$ BEGIN
  EXECUTE format('GRANT CREATE ON DATABASE %I TO %s', current_database(), '${to.replaceAll("'", "''")}');
END $hookwell$;
`;
}
