import type { Delivery } from "../../src/model/delivery.ts";
import { HttpSender, type HttpSenderOptions } from "../../src/send/http-sender.ts";
import { DeliveryError } from "../../src/send/sender.ts";

export const loopback = { allow: ["127.0.0.0/8", "::1/128"], http: true };
export const secret = `whsec_${Buffer.alloc(32, "hookwell").toString("base64")}`;

/** A claimed delivery to `url`. */
export function deliveryTo(url: string, parts: Partial<Delivery> = {}): Delivery {
  const at = new Date();
  return {
    id: "dlv_1",
    eventId: "evt_1",
    subscriptionId: "sub_1",
    url,
    secret,
    payload: Buffer.from('{"id":"evt_1"}'),
    status: "pending",
    attempts: 1,
    nextAttemptAt: at,
    createdAt: at,
    updatedAt: at,
    type: "user.created",
    ...parts,
  };
}

/** A sender that may send to loopback; disposing closes it. */
export function loopbackSender(
  options: Omit<HttpSenderOptions, "dispatcher"> = {},
): HttpSender & AsyncDisposable {
  const sender = new HttpSender({ network: loopback, ...options });
  return Object.assign(sender, { [Symbol.asyncDispose]: () => sender.close() });
}

/** The DeliveryError that a send rejects with; anything else fails the test. */
export async function failureOf(sent: Promise<unknown>): Promise<DeliveryError> {
  const error = await sent.then(
    (receipt) => new Error(`was delivered: ${JSON.stringify(receipt)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof DeliveryError) return error;
  throw error;
}
