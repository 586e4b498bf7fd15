import type { EventKey } from "../../model/event.ts";
import type { DeliveryStatus } from "../../model/states.ts";
import type { DeliveryOfEvent } from "../explain-contract.ts";
import type { Connection } from "./connection.ts";
import { text } from "./rows.ts";

const pairText = `
SELECT id, subscription_id, status FROM hookwell_delivery INDEXED BY hookwell_delivery_pair
WHERE event_id = ? AND subscription_id = ? AND project_id = ?`;

export function deliveriesOfEvent(
  connection: Connection,
  { id, projectId }: EventKey,
  subscriptionIds: readonly string[],
): DeliveryOfEvent[] {
  return [...subscriptionIds].sort().flatMap((subscriptionId) =>
    connection.all(pairText, [id, subscriptionId, projectId]).map((row) => ({
      id: text(row.id),
      subscriptionId: text(row.subscription_id),
      status: text(row.status) as DeliveryStatus,
    })),
  );
}
