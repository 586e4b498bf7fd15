import type { Row } from "../../adapters/seam.ts";
import type { EventOutcome, EventRecord } from "../../model/event.ts";
import type { EventFilter, Page, PageOf, Visibility } from "../contract.ts";
import type { Connection } from "./connection.ts";
import { eventColumns, toEventRecord } from "./event-rows.ts";
import { coveredSql } from "./holds.ts";
import { type Condition, condition, type Listing, readPage } from "./pages.ts";
import { text } from "./rows.ts";

type EventWithOutcome = EventRecord & { outcome: EventOutcome };

const deliveriesOf = `SELECT 1 FROM hookwell_delivery d INDEXED BY hookwell_delivery_pair
    WHERE d.event_id = e.id AND d.project_id = e.project_id`;
const outcome = `CASE
  WHEN e.state = 'parked' THEN 'parked'
  WHEN NOT EXISTS (${deliveriesOf}) THEN CASE e.state WHEN 'new' THEN 'pending' ELSE 'unmatched' END
  WHEN EXISTS (${deliveriesOf} AND d.status = 'pending' AND NOT EXISTS (
    SELECT 1 FROM hookwell_subscription s WHERE s.id = d.subscription_id AND s.status <> 'active')
    AND NOT ${coveredSql}) THEN 'pending'
  WHEN EXISTS (${deliveriesOf} AND d.status = 'pending') THEN 'held'
  WHEN EXISTS (${deliveriesOf} AND d.status = 'failed') THEN 'failed'
  WHEN EXISTS (${deliveriesOf} AND d.status = 'delivered') THEN 'delivered'
  ELSE 'cancelled' END`;
const columns = `${eventColumns}, ${outcome} AS outcome`;

const getEventText = `
SELECT ${columns}
FROM hookwell_event e WHERE e.id = ? ORDER BY e.seq`;

/** The event a caller may see under this id; without a project, the first one captured. */
export function getEvent(
  connection: Connection,
  id: string,
  visibility: Visibility,
): EventWithOutcome | undefined {
  return connection
    .all(getEventText, [id])
    .map(toEvent)
    .find(
      (event) =>
        (visibility.projectId === undefined || event.projectId === visibility.projectId) &&
        (visibility.tenantId === undefined || event.tenantId === visibility.tenantId) &&
        (visibility.ownerId === undefined || (event.audience?.includes(visibility.ownerId) ?? false)),
    );
}

function eventListing(filter: EventFilter): Listing {
  const { id, type, subject, projectId, tenantId, ownerId } = filter;
  const served: Condition[] = [];
  const filters: Condition[] = [];
  let index = "hookwell_event_list";
  if (id !== undefined) {
    index = "hookwell_event_key";
    served.push(condition("e.id = ?", id));
  } else if (subject !== undefined) {
    index = "hookwell_event_subject";
    served.push(condition("e.subject = ?", subject));
  }
  if (filter.outcome === "parked") {
    // There are few, and they are looked for where all is well, too.
    const parked = condition("e.state = 'parked'");
    if (id === undefined && subject === undefined) {
      index = "hookwell_event_parked";
      served.push(parked);
    } else filters.push(parked);
  } else if (filter.outcome !== undefined) filters.push(condition(`${outcome} = ?`, filter.outcome));
  if (id !== undefined && subject !== undefined) filters.push(condition("e.subject = ?", subject));
  if (type !== undefined) filters.push(condition("e.type = ?", type));
  if (projectId !== undefined) filters.push(condition("e.project_id = ?", projectId));
  if (tenantId !== undefined) filters.push(condition("e.tenant_id = ?", tenantId));
  // The owners of an event are its audience.
  if (ownerId !== undefined)
    filters.push(condition("EXISTS (SELECT 1 FROM json_each(e.audience) a WHERE a.value = ?)", ownerId));
  return {
    columns,
    from: `hookwell_event e INDEXED BY ${index}`,
    joins: "",
    time: "e.captured_at",
    id: "e.id",
    served,
    filters,
    few: id !== undefined,
  };
}

export function listEvents(
  connection: Connection,
  filter: EventFilter,
  page: Page,
): Promise<PageOf<EventWithOutcome>> {
  return readPage(connection, eventListing(filter), filter, page, toEvent);
}

function toEvent(row: Row): EventWithOutcome {
  return { ...toEventRecord(row), outcome: text(row.outcome) as EventOutcome };
}
