import { isHookwellError } from "../../model/errors.ts";
import type { HookwellCore } from "../../publish/surface.ts";
import type { OutboxStore } from "../../store/contract.ts";
import type { StoreInspection } from "../../store/inspection-contract.ts";
import type { Migrations } from "../../store/migrations.ts";
import { shortDuration } from "../times.ts";
import { type Found, note, problem, well } from "./report.ts";

const clockNoteMs = 2_000;
const clockProblemMs = 30_000;

/** Opens the database; undefined when nothing more can be looked at. */
export async function checkDatabase(
  hooks: HookwellCore,
  description: string,
  say: (found: Found) => void,
): Promise<StoreInspection | undefined> {
  try {
    await hooks.store.open({ withKeys: false });
  } catch (error) {
    if (!isHookwellError(error)) throw error;
    const advice = {
      schema_version: "Migrate it, or point HOOKWELL_DATABASE_URL or HOOKWELL_DATA_DIR at the right one.",
      storage: "See that the server runs, and that url, user, password and network are right.",
    }[error.code];
    say(
      problem(
        error.code === "schema_version" ? "schema" : "database",
        error.message,
        advice ?? "Mend that first.",
      ),
    );
    return undefined;
  }
  say(well("database", `${description} can be reached.`));
  say(await schema(hooks.store));
  const { found, inspection } = await clock(hooks);
  say(found);
  say(await keys(hooks.store));
  for (const finding of inspection.findings) say(finding);
  return inspection;
}

async function schema(store: OutboxStore): Promise<Found> {
  const { migrations } = store as OutboxStore & { readonly migrations?: Migrations };
  if (!migrations) return well("schema", `The ${store.dialect} store has none.`);
  const { current, wanted, pending } = await migrations.check();
  if (current > wanted)
    return note(
      "schema",
      `It has version ${current}, newer than this build (${wanted}), which can use it.`,
      "Update this process when the rollout is over.",
    );
  return pending.length === 0
    ? well("schema", `It has version ${current}, that of this build.`)
    : note("schema", `Steps are pending: ${pending.join(", ")}.`, "Run `hookwell migrate`.");
}

/** The instant halfway between asking and answer is compared, so a slow connection is no difference. */
async function clock(
  hooks: HookwellCore,
): Promise<{ readonly found: Found; readonly inspection: StoreInspection }> {
  const before = hooks.clock().getTime();
  const inspection = await hooks.store.inspect(null);
  const after = hooks.clock().getTime();
  const off = inspection.clock.getTime() - (before + after) / 2;
  return { inspection, found: clockFinding(hooks.store.dialect, off, (after - before) / 2) };
}

export function clockFinding(dialect: string, off: number, uncertain: number): Found {
  if (dialect !== "postgres") return well("clock", "The database goes by the clock of this machine.");
  const apart = Math.max(0, Math.abs(off) - uncertain);
  if (apart < clockNoteMs) return well("clock", "The clocks of the database and of this machine agree.");
  const message = `The clock of the database is ${shortDuration(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} that of this machine.`;
  const advice =
    "Keep both by NTP. Due times go by the database's clock; the timestamp that is signed goes by this machine's, and receivers refuse one that is more than 5 minutes off.";
  return apart < clockProblemMs ? note("clock", message, advice) : problem("clock", message, advice);
}

async function keys(store: OutboxStore): Promise<Found> {
  try {
    const state = await store.checkKeys();
    return state === "usable"
      ? well("keys", "The encryption keys open what is sealed.")
      : note(
          "keys",
          "There is no encryption key yet, and nothing that needs one; the first secret makes one.",
        );
  } catch (error) {
    if (!isHookwellError(error)) throw error;
    return problem(
      "keys",
      error.message,
      "Nothing can be sent without the keys. Give every process the same HOOKWELL_ENCRYPTION_KEYS, those that sealed what is stored among them.",
    );
  }
}
