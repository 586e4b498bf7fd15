import type { DispatchItem } from "../contract.ts";

/** The bodies of events as a parameter: base64, each with the place of its event. */
export function bodiesJson(items: readonly DispatchItem[]): string {
  return JSON.stringify(
    items.flatMap((item, ord) =>
      item.bodies.map(({ variant, bytes }) => ({
        ord,
        variant,
        bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
      })),
    ),
  );
}

/** Their deliveries, each with the place of its event and its own. */
export function deliveriesJson(items: readonly DispatchItem[]): string {
  let nr = 0;
  return JSON.stringify(
    items.flatMap((item, ord) =>
      item.deliveries.map((delivery) => ({
        ord,
        nr: nr++,
        id: delivery.id,
        subscription_id: delivery.subscriptionId,
        endpoint_id: delivery.endpointId,
        variant: delivery.variant,
        ordered: delivery.ordered === true,
      })),
    ),
  );
}
