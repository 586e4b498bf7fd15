import { hash, randomFillSync } from "node:crypto";
import type { Clock } from "./clock.ts";

/** Generates a unique id. Injectable, so that tests get deterministic ones. */
export type IdFunc = () => string;

/** Fills the given bytes with randomness. */
export type RandomBytes = (size: number) => Uint8Array;

/** Cryptographic randomness of the runtime. */
export const systemRandom: RandomBytes = (size) => randomFillSync(new Uint8Array(size));

/** Ids of the things Hookwell names itself. */
export type IdPrefix = "evt_" | "dlv_" | "sub_" | "rpl_" | "key_" | "end_" | "hld_";

/** Prefix + UUIDv7 (RFC 9562): sorts by time of creation, in the order of making within one process. */
export function idFunc(prefix: IdPrefix, clock: Clock, random: RandomBytes): IdFunc {
  let lastMs = 0;
  let counter = 0;
  return () => {
    const ms = Math.max(clock().getTime(), lastMs);
    const bytes = random(16);
    // 12 bits of rand_a count up inside one millisecond, from a random start that leaves room.
    counter = ms === lastMs ? counter + 1 : ((bytes[6]! & 0x07) << 8) | bytes[7]!;
    lastMs = ms;
    if (counter > 0xfff) {
      lastMs = ms + 1;
      counter = 0;
    }
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, 16);
    view.writeUIntBE(lastMs, 0, 6);
    view.writeUInt16BE(0x7000 | counter, 6);
    view[8] = 0x80 | (view[8]! & 0x3f);
    const hex = view.toString("hex");
    return `${prefix}${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
}

/** Ids that come out the same each time: the n-th one follows from the seed and the moment. */
export function repeatableIds(prefix: IdPrefix, at: Date, seed: string): IdFunc {
  let made = 0;
  const bytes: RandomBytes = () =>
    new Uint8Array(hash("sha256", `${made++}\u001f${seed}`, "buffer").subarray(0, 16));
  return idFunc(prefix, () => at, bytes);
}

/** The id of the delivery of one event to one subscription: the same wherever and whenever it is made. */
export function deliveryId(eventId: string, subscriptionId: string): string {
  const digest = hash("sha256", `${eventId}\u001f${subscriptionId}`, "hex");
  return `dlv_${digest.slice(0, 32)}`;
}
