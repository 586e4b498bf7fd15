import type { Row } from "../../adapters/seam.ts";
import type { Actor, EventRecord } from "../../model/event.ts";
import type { EventState } from "../../model/states.ts";
import {
  date,
  defined,
  flag,
  integer,
  nonEmpty,
  optionalDate,
  optionalInteger,
  optionalJson,
  optionalText,
  text,
} from "./rows.ts";

/** The columns that {@link toEvent} reads, of the event table under this alias. */
export function eventColumnsSql(e: string): string {
  const names =
    "project_id, id, type, tenant_id, subject, revision, actor, audience, occurred_at, captured_at, data, patch, state, route, tries, error, dispatched_at";
  return `${names
    .split(", ")
    .map((name) => `${e}.${name}`)
    .join(", ")}, ${e}.fanned_out::int AS fanned_out`;
}

export function toEvent(row: Row): EventRecord {
  const damaged: string[] = [];
  // One row that somebody damaged must not stop the others of its batch or list.
  const json = <T>(name: string): T | undefined => {
    try {
      return optionalJson<T>(row, name);
    } catch {
      damaged.push(name);
      return undefined;
    }
  };
  return defined<EventRecord>({
    projectId: text(row, "project_id"),
    id: text(row, "id"),
    type: text(row, "type"),
    tenantId: nonEmpty(row, "tenant_id"),
    subject: optionalText(row, "subject"),
    revision: optionalInteger(row, "revision"),
    actor: json<Actor>("actor"),
    audience: json<string[]>("audience"),
    occurredAt: date(row, "occurred_at"),
    capturedAt: date(row, "captured_at"),
    data: text(row, "data"),
    patch: optionalText(row, "patch"),
    state: text(row, "state") as EventState,
    route: text(row, "route"),
    fannedOut: flag(row, "fanned_out"),
    tries: integer(row, "tries"),
    error: optionalText(row, "error"),
    dispatchedAt: optionalDate(row, "dispatched_at"),
    damage: damaged.length > 0 ? `the stored ${damaged.join(" and ")} is no JSON` : undefined,
  });
}
