import { type Row, runProgramSync } from "../../adapters/seam.ts";
import type { DeliverySelection } from "../../model/replay.ts";
import type { TimeRange } from "../contract.ts";
import type { CancelPosition, CancelWindow } from "../replay-contract.ts";
import type { Connection } from "./connection.ts";
import { cancelText } from "./deliveries.ts";
import { settleOrder } from "./ordering.ts";
import { type Condition, condition } from "./pages.ts";
import { integer, text } from "./rows.ts";
import { allOf, paramsOf, selectionFilters } from "./walk.ts";

/** Cancels what it selects among the next `look` pending rows, in one write. */
export async function cancelWindow(
  connection: Connection,
  selection: DeliverySelection,
  period: TimeRange,
  after: CancelPosition | undefined,
  { look, dryRun }: { readonly look: number; readonly dryRun: boolean },
  nowAt: () => number,
): Promise<CancelWindow> {
  const read = (): Row[] => readWindow(connection, selection, period, after, look);
  const rows = dryRun ? read() : await connection.write(() => cancelAll(connection, read(), nowAt()));
  const last = rows.length === look ? rows.at(-1) : undefined;
  return {
    count: rows.filter(isHit).length,
    ...(last && {
      next: {
        subscriptionId: text(last.subscription_id),
        dueAt: integer(last.due_at),
        id: text(last.id),
      },
    }),
  };
}

function cancelAll(connection: Connection, rows: Row[], now: number): Row[] {
  const hits = rows.filter(isHit);
  for (const row of hits) connection.all(cancelText, [now, text(row.id)]);
  for (const row of hits)
    if (row.order_key !== null) runProgramSync(settleOrder(text(row.id), now), connection.run);
  return rows;
}

function isHit(row: Row): boolean {
  return integer(row.hit) === 1;
}

function periodFilters({ since, until }: TimeRange): Condition[] {
  return [
    condition("d.created_at >= ?", since?.getTime() ?? Number.MIN_SAFE_INTEGER),
    condition("d.created_at < ?", until?.getTime() ?? Number.MAX_SAFE_INTEGER),
  ];
}

/** One event has a handful of deliveries; everything else goes along the lanes. */
function readWindow(
  connection: Connection,
  selection: DeliverySelection,
  period: TimeRange,
  after: CancelPosition | undefined,
  look: number,
): Row[] {
  const { eventId, subscriptionId } = selection;
  const served: Condition[] = [condition("d.status = 'pending'")];
  let index = "hookwell_delivery_pending";
  if (eventId !== undefined) {
    index = "hookwell_delivery_pair";
    served.push(condition("d.event_id = ?", eventId));
  } else if (subscriptionId !== undefined) served.push(condition("d.subscription_id = ?", subscriptionId));
  const { subscriptionId: lane, dueAt, id } = after ?? { subscriptionId: "", dueAt: 0, id: "" };
  served.push(condition("(d.subscription_id, d.due_at, d.id) > (?, ?, ?)", lane, dueAt, id));
  const wanted = [...periodFilters(period), ...selectionFilters(selection)];
  return connection.all(
    `SELECT d.id, d.subscription_id, d.due_at, d.order_key, ${allOf(wanted)} AS hit
FROM hookwell_delivery d INDEXED BY ${index} WHERE ${allOf(served)}
ORDER BY d.subscription_id, d.due_at, d.id LIMIT CAST(? AS INTEGER)`,
    [...paramsOf(wanted), ...paramsOf(served), look],
  );
}
