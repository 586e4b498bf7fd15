import type { Row, Statement } from "../../adapters/seam.ts";
import type { DeliveryRecord } from "../../model/delivery.ts";
import { ValidationError } from "../../model/errors.ts";
import type { EventOutcome, EventRecord } from "../../model/event.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type {
  DeliveryFilter,
  EventFilter,
  Page,
  PageOf,
  SubscriptionFilter,
  Visibility,
} from "../contract.ts";
import { type Database, nowSql } from "./database.ts";
import { recordColumnsSql, recordJoinsSql, toDeliveryRecord } from "./delivery-rows.ts";
import { eventColumnsSql, toEvent } from "./event-rows.ts";
import { coveredSql } from "./holds-sql.ts";
import { date, text } from "./rows.ts";
import { toSubscription } from "./subscription-rows.ts";

type EventWithOutcome = EventRecord & { outcome: EventOutcome };

export async function listSubscriptions(
  db: Database,
  filter: SubscriptionFilter,
  page: Page,
): Promise<PageOf<SubscriptionRecord>> {
  const where = new Conditions();
  where.equal("s.project_id", filter.projectId);
  where.equal("s.tenant_id", filter.tenantId);
  where.equal("s.owner_id", filter.ownerId);
  where.equal("s.status", filter.status);
  if (filter.status === undefined) where.add("s.status <> 'deleted'");
  where.host("s.url_host", filter.urlHost);
  where.equal("s.external_id", filter.externalId);
  const sql = `SELECT s.*, s.created_at AS at FROM ${db.schema}.subscription s`;
  return await pageOf(db, where, sql, "s.created_at", "s.id", page, toSubscription);
}

/** The event a caller may see under this id; without a project, the first one captured. */
export async function getEvent(
  db: Database,
  id: string,
  visibility: Visibility,
): Promise<EventWithOutcome | undefined> {
  const where = new Conditions();
  where.equal("e.id", id);
  eventVisibility(where, visibility);
  const [row] = await db.run({
    text: `SELECT ${eventColumnsSql("e")}, ${outcomeSql(db.schema)} AS outcome
FROM ${db.schema}.event e WHERE ${where.sql} ORDER BY e.seq LIMIT 1`,
    params: where.params,
  });
  return row && toEventWithOutcome(row);
}

export async function listEvents(
  db: Database,
  filter: EventFilter,
  page: Page,
): Promise<PageOf<EventWithOutcome>> {
  const where = new Conditions();
  eventVisibility(where, filter);
  where.range("e.captured_at", filter.since, filter.until);
  where.equal("e.id", filter.id);
  where.equal("e.type", filter.type);
  where.equal("e.subject", filter.subject);
  // There are few parked ones, and an index of their own.
  if (filter.outcome === "parked") where.add("e.state = 'parked'");
  else where.equal(outcomeSql(db.schema), filter.outcome);
  const sql = `SELECT ${eventColumnsSql("e")}, e.captured_at AS at, ${outcomeSql(db.schema)} AS outcome
FROM ${db.schema}.event e`;
  return await pageOf(db, where, sql, "e.captured_at", "e.id", page, toEventWithOutcome);
}

export async function listDeliveries(
  db: Database,
  filter: DeliveryFilter,
  page: Page,
  now: string | null,
): Promise<PageOf<DeliveryRecord>> {
  const where = new Conditions([now]);
  where.equal("d.project_id", filter.projectId);
  where.equal("s.tenant_id", filter.tenantId);
  where.equal("s.owner_id", filter.ownerId);
  where.range("d.created_at", filter.since, filter.until);
  where.equal("d.status", filter.status);
  where.equal("d.subscription_id", filter.subscriptionId);
  where.equal("d.event_id", filter.eventId);
  where.equal("d.type", filter.type);
  where.equal("d.error_code", filter.errorCode);
  where.equal("d.replay_id", filter.replayId);
  where.equal("e.subject", filter.subject);
  where.host("s.url_host", filter.urlHost);
  const sql = `WITH t AS MATERIALIZED (SELECT ${nowSql("$1")} AS now)
SELECT ${recordColumnsSql(db.schema)}, d.created_at AS at
FROM ${db.schema}.delivery d
${recordJoinsSql(db.schema)}`;
  return await pageOf(db, where, sql, "d.created_at", "d.id", page, toDeliveryRecord);
}

/** Newest first by (time, id), after the position; a next position only when more rows follow. */
export async function pageOf<T>(
  db: Database,
  where: Conditions,
  select: string,
  time: string,
  id: string,
  { limit, after }: Page,
  map: (row: Row) => T,
): Promise<PageOf<T>> {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 100)
    throw new ValidationError([{ pointer: "/limit", message: "must be a whole number from 1 to 100" }]);
  if (after)
    where.add(
      `(${time}, ${id}) < (${where.use(String(after.at.getTime()))}::text::bigint, ${where.use(after.id)}::text)`,
    );
  const statement: Statement = {
    text: `${select}\nWHERE ${where.sql}\nORDER BY ${time} DESC, ${id} DESC LIMIT ${limit + 1}`,
    params: where.params,
  };
  const rows = await db.run(statement);
  const last = rows.length > limit ? rows[limit - 1]! : undefined;
  return {
    items: rows.slice(0, limit).map(map),
    ...(last && { next: { at: date(last, "at"), id: text(last, "id") } }),
  };
}

/** The conditions of one query and their parameters, numbered in the order of use. */
export class Conditions {
  readonly #parts: string[] = [];
  readonly params: (string | null)[];

  constructor(params: readonly (string | null)[] = []) {
    this.params = [...params];
  }

  get sql(): string {
    return this.#parts.length === 0 ? "true" : this.#parts.join(" AND ");
  }

  /** Adds a parameter and answers its name. */
  use(value: string): string {
    this.params.push(value);
    return `$${this.params.length}`;
  }

  add(condition: string): void {
    this.#parts.push(condition);
  }

  /** Undefined does not limit. */
  equal(expression: string, value: string | undefined): void {
    if (value !== undefined) this.add(`${expression} = ${this.use(value)}::text`);
  }

  /** The host with its port, or without it. */
  host(expression: string, value: string | undefined): void {
    if (value === undefined) return;
    this.add(
      `(${expression} = ${this.use(value)}::text OR starts_with(${expression}, ${this.use(`${value}:`)}::text))`,
    );
  }

  /** Half-open. */
  range(expression: string, since: Date | undefined, until: Date | undefined): void {
    if (since) this.add(`${expression} >= ${this.use(String(since.getTime()))}::text::bigint`);
    if (until) this.add(`${expression} < ${this.use(String(until.getTime()))}::text::bigint`);
  }
}

/** The owners of an event are its audience. */
function eventVisibility(where: Conditions, { projectId, tenantId, ownerId }: Visibility): void {
  where.equal("e.project_id", projectId);
  where.equal("e.tenant_id", tenantId);
  if (ownerId !== undefined) where.add(`jsonb_exists(e.audience::jsonb, ${where.use(ownerId)}::text)`);
}

/** What became of event `e`, from its deliveries. */
function outcomeSql(s: string): string {
  return `CASE WHEN e.state = 'parked' THEN 'parked' ELSE (
  SELECT CASE
      WHEN count(*) = 0 THEN CASE e.state WHEN 'new' THEN 'pending' ELSE 'unmatched' END
      WHEN count(*) FILTER (WHERE o.status = 'pending' AND coalesce(os.status, 'active') = 'active'
        AND NOT ${coveredSql(`${s}.hold`, "o")}) > 0 THEN 'pending'
      WHEN count(*) FILTER (WHERE o.status = 'pending') > 0 THEN 'held'
      WHEN count(*) FILTER (WHERE o.status = 'failed') > 0 THEN 'failed'
      WHEN count(*) FILTER (WHERE o.status = 'delivered') > 0 THEN 'delivered'
      ELSE 'cancelled' END
  FROM ${s}.delivery o LEFT JOIN ${s}.subscription os ON os.id = o.subscription_id
  WHERE o.event_id = e.id AND o.project_id = e.project_id) END`;
}

function toEventWithOutcome(row: Row): EventWithOutcome {
  return { ...toEvent(row), outcome: text(row, "outcome") as EventOutcome };
}
