import { ValidationError } from "../model/errors.ts";
import { checkEventType, checkName } from "../model/identifiers.ts";
import type { DeliverySelection } from "../model/replay.ts";
import type { Visibility } from "../store/contract.ts";
import { checkAll } from "./checks.ts";

/** The parts of a selection, as the API calls them. */
const parts = {
  projectId: "project_id",
  tenantId: "tenant_id",
  ownerId: "owner_id",
  subscriptionId: "subscription_id",
  eventId: "event_id",
  type: "type",
  subject: "subject",
  urlHost: "url_host",
  errorCode: "error_code",
  replayId: "replay_id",
} as const satisfies Record<keyof DeliverySelection, string>;

const names = Object.entries(parts) as [keyof DeliverySelection, string][];

/**
 * Every part that is given is well formed, and there is one, or a period: that everything is meant must be said.
 * @throws ValidationError
 */
export function checkSelection(selection: DeliverySelection, pointer: string, hasPeriod = false): void {
  if (typeof selection !== "object" || selection === null)
    throw new ValidationError([{ pointer, message: "must be an object" }]);
  if (!hasPeriod && names.every(([part]) => selection[part] === undefined))
    throw new ValidationError([
      { pointer, message: `must name at least one of ${names.map(([, name]) => name).join(", ")}` },
    ]);
  checkAll(
    names.map(([part, name]) => () => {
      const value = selection[part];
      if (value === undefined) return;
      const field = `${pointer}/${name}`.slice(1);
      if (part === "type") checkEventType(value, field);
      else checkName(value, field);
    }),
  );
}

/**
 * A selection bound to what its asker may see.
 * @throws ValidationError when it names another project, tenant or owner
 */
export function seenSelection(
  selection: DeliverySelection,
  visibility: Visibility,
  pointer: string,
): DeliverySelection {
  const seen: { -readonly [Part in keyof DeliverySelection]: DeliverySelection[Part] } = {};
  for (const [part] of names) if (selection[part] !== undefined) seen[part] = selection[part];
  if (seen.urlHost !== undefined) seen.urlHost = seen.urlHost.toLowerCase();
  for (const part of ["projectId", "tenantId", "ownerId"] as const) {
    const own = visibility[part];
    if (own === undefined) continue;
    if (seen[part] !== undefined && seen[part] !== own)
      throw new ValidationError([
        { pointer: `${pointer}/${parts[part]}`, message: "must be absent or the one that you may see" },
      ]);
    seen[part] = own;
  }
  return seen;
}
