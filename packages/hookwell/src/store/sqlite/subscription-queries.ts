import { runProgramSync } from "../../adapters/seam.ts";
import { StorageError } from "../../model/errors.ts";
import type { Matchable } from "../../model/matching.ts";
import type { Subscription, SubscriptionRecord } from "../../model/subscription.ts";
import type { Match, Page, PageOf, SubscriptionFilter, Visibility } from "../contract.ts";
import type { Connection } from "./connection.ts";
import type { Endpoints } from "./last-look.ts";
import { matchProgram } from "./matching.ts";
import { type Condition, condition, type Listing, readPage } from "./pages.ts";
import { optionalName, present, text } from "./rows.ts";
import { isVisible, toSubscriptionRecord } from "./subscription-rows.ts";

export function matchSubscriptions(connection: Connection, queries: readonly Matchable[]): Match[][] {
  return queries.map((query) => runProgramSync(matchProgram(query, Number.MAX_SAFE_INTEGER), connection.run));
}

const activeText = `
SELECT s.* FROM hookwell_subscription s INDEXED BY hookwell_subscription_project
WHERE s.project_id = ? AND s.status = 'active' ORDER BY s.id`;

/** The reference form, with the secret that new deliveries are bound to. */
export function listActive(connection: Connection, endpoints: Endpoints, projectId: string): Subscription[] {
  return connection.all(activeText, [projectId]).map((row) => {
    const endpoint = endpoints.get(text(row.endpoint_id));
    if (!endpoint)
      throw new StorageError(`The endpoint version of subscription ${text(row.id)} is missing or damaged.`);
    return present<Subscription>({
      id: text(row.id),
      projectId: text(row.project_id),
      tenantId: optionalName(row.tenant_id),
      ownerId: optionalName(row.owner_id),
      url: text(row.url),
      secret: endpoint.secrets[0]!.secret,
      eventTypes: JSON.parse(text(row.event_types)) as string[],
      active: true,
    });
  });
}

export function getSubscription(
  connection: Connection,
  id: string,
  visibility: Visibility,
): SubscriptionRecord | undefined {
  const [row] = connection.all("SELECT * FROM hookwell_subscription WHERE id = ?", [id]);
  const record = row && toSubscriptionRecord(row);
  return record && isVisible(record, visibility) ? record : undefined;
}

function subscriptionListing(filter: SubscriptionFilter): Listing {
  const { projectId, tenantId, ownerId, status, urlHost, externalId } = filter;
  const served: Condition[] = [];
  const filters: Condition[] = [];
  let index = "hookwell_subscription_list";
  if (externalId !== undefined) {
    index = "hookwell_subscription_external";
    served.push(condition("s.external_id = ?", externalId));
  } else if (projectId !== undefined) {
    index = "hookwell_subscription_project";
    served.push(condition("s.project_id = ?", projectId));
  }
  if (externalId !== undefined && projectId !== undefined)
    filters.push(condition("s.project_id = ?", projectId));
  if (tenantId !== undefined) filters.push(condition("s.tenant_id = ?", tenantId));
  if (ownerId !== undefined) filters.push(condition("s.owner_id = ?", ownerId));
  filters.push(status === undefined ? condition("s.status <> 'deleted'") : condition("s.status = ?", status));
  if (urlHost !== undefined) filters.push(onHost("s", urlHost));
  return {
    columns: "s.*",
    from: `hookwell_subscription s INDEXED BY ${index}`,
    joins: "",
    time: "s.created_at",
    id: "s.id",
    served,
    filters,
  };
}

/** The host with its port, or without it. */
export function onHost(table: string, host: string): Condition {
  return condition(
    `(${table}.url_host = ? OR (${table}.url_host >= ? AND ${table}.url_host < ?))`,
    host,
    `${host}:`,
    `${host};`,
  );
}

export function listSubscriptions(
  connection: Connection,
  filter: SubscriptionFilter,
  page: Page,
): Promise<PageOf<SubscriptionRecord>> {
  return readPage(connection, subscriptionListing(filter), {}, page, toSubscriptionRecord);
}
