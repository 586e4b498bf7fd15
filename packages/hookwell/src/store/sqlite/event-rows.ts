import type { Row } from "../../adapters/seam.ts";
import type { Actor, EventRecord } from "../../model/event.ts";
import type { EventState } from "../../model/states.ts";
import {
  date,
  integer,
  optionalDate,
  optionalInteger,
  optionalJson,
  optionalName,
  optionalText,
  present,
  text,
} from "./rows.ts";

/** The columns {@link toEventRecord} reads, of `e`. */
export const eventColumns = `e.seq, e.project_id, e.id, e.type, e.tenant_id, e.subject, e.revision, e.actor,
  e.audience, e.occurred_at, e.captured_at, e.data, e.patch, e.state, e.route, e.fanned_out, e.tries, e.error,
  e.dispatched_at`;

export function toEventRecord(row: Row): EventRecord {
  const damaged: string[] = [];
  // One row that somebody damaged must not stop the others of its batch or list.
  const json = <T>(name: string): T | undefined => {
    try {
      return optionalJson<T>(row[name]);
    } catch {
      damaged.push(name);
      return undefined;
    }
  };
  return present<EventRecord>({
    projectId: text(row.project_id),
    id: text(row.id),
    type: text(row.type),
    tenantId: optionalName(row.tenant_id),
    subject: optionalText(row.subject),
    revision: optionalInteger(row.revision),
    actor: json<Actor>("actor"),
    audience: json<string[]>("audience"),
    occurredAt: date(row.occurred_at),
    capturedAt: date(row.captured_at),
    data: text(row.data),
    patch: optionalText(row.patch),
    state: text(row.state) as EventState,
    route: text(row.route),
    fannedOut: integer(row.fanned_out) === 1,
    tries: integer(row.tries),
    error: optionalText(row.error),
    dispatchedAt: optionalDate(row.dispatched_at),
    damage: damaged.length > 0 ? `the stored ${damaged.join(" and ")} is no JSON` : undefined,
  });
}
