import type { EventKey } from "../../model/event.ts";
import type { DeliveryStatus } from "../../model/states.ts";
import type { DeliveryOfEvent } from "../explain-contract.ts";
import { type Database, oneOf, textsFor } from "./database.ts";
import { text } from "./rows.ts";

/** $1 event, $2 project, $3 subscriptions (JSON list). By delivery_pair. */
const texts = textsFor(
  (s) => `SELECT d.id, d.subscription_id, d.status FROM ${s}.delivery d
WHERE d.event_id = $1::text AND d.project_id = $2::text
  AND ${oneOf("d.subscription_id", "SELECT want.id FROM jsonb_array_elements_text($3::text::jsonb) AS want(id)")}
ORDER BY d.subscription_id`,
);

export async function deliveriesOfEvent(
  db: Database,
  { id, projectId }: EventKey,
  subscriptionIds: readonly string[],
): Promise<DeliveryOfEvent[]> {
  const rows = await db.run({
    text: texts(db.schema),
    params: [id, projectId, JSON.stringify(subscriptionIds)],
  });
  return rows.map((row) => ({
    id: text(row, "id"),
    subscriptionId: text(row, "subscription_id"),
    status: text(row, "status") as DeliveryStatus,
  }));
}
