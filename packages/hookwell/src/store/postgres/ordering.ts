import type { Program } from "../../adapters/seam.ts";
import { orderingTexts } from "./ordering-sql.ts";
import { flag, text } from "./rows.ts";

/** Before a change of rows that may have a place in an order: nobody else changes their groups until the end. */
export function* lockOrder(schema: string, ids: readonly string[]): Program<void> {
  yield { text: orderingTexts(schema).lockLanes, params: [JSON.stringify(ids)] };
}

/** The same, for rows that are still to be written. */
export function* lockLanes(schema: string, lanes: readonly string[]): Program<void> {
  yield { text: orderingTexts(schema).lockThese, params: [JSON.stringify(lanes)] };
}

/** After the change. True when it let rows go. */
export function* settleOrder(schema: string, ids: readonly string[], now: string | null): Program<boolean> {
  if (ids.length === 0) return false;
  const texts = orderingTexts(schema);
  const parameter = JSON.stringify(ids);
  yield { text: texts.lockHeads, params: [parameter] };
  return (yield { text: texts.settle, params: [now, parameter] }).length > 0;
}

/** After its subscription was enabled: rows that were cancelled or failed meanwhile may have been heads. */
export function* settleLane(schema: string, lane: string, now: string | null): Program<void> {
  const rows = yield { text: orderingTexts(schema).waiting, params: [lane] };
  yield* settleOrder(
    schema,
    rows.map((row) => text(row, "id")),
    now,
  );
}

/** After the subscription gave up its order. */
export function* dropOrder(schema: string, lane: string, now: string | null): Program<void> {
  yield { text: orderingTexts(schema).drop, params: [now, lane] };
}

/** True when a higher revision of its subject may have been seen. */
export function* isSuperseded(schema: string, id: string): Program<boolean> {
  const [row] = yield { text: orderingTexts(schema).superseded, params: [id] };
  return flag(row!, "superseded");
}
