import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { Agent } from "undici";

/** What a peer's job holds: everything the delivery needs but the address and the key, which its worker knows. */
export interface Job {
  readonly id: string;
  readonly subscription: number;
  readonly body: string;
}

/** The same text for everybody; `bytes` long, at least about 100. */
export function makeData(bytes: number): { id: string; email: string; note: string } {
  const data = { id: "0198f1c2-1111-7abc-8def-000000000001", email: "someone@example.com", note: "" };
  const empty = Buffer.byteLength(JSON.stringify(data));
  return { ...data, note: "x".repeat(Math.max(0, bytes - empty)) };
}

export function makeBody(id: string, data: unknown): string {
  return JSON.stringify({ id, type: "bench.happened", timestamp: "2025-01-01T00:00:00.000Z", data });
}

/** One secret for each subscription, the same in every run. */
export function secretOf(subscription: number): string {
  const bytes = Buffer.alloc(32, 7);
  bytes.writeUInt32BE(subscription, 0);
  return `whsec_${bytes.toString("base64")}`;
}

export function pathOf(subscription: number): string {
  return `/s/${subscription}`;
}

/** The one way in which the peers and the bare loop send: a Standard Webhooks signature and undici's fastest call. */
export class Poster {
  readonly #origin: string;
  readonly #agent = new Agent({ pipelining: 1 });
  readonly #keys = new Map<number, KeyObject>();

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** @throws when the answer is no 2xx */
  async post({ id, subscription, body }: Job): Promise<void> {
    const seconds = Math.floor(Date.now() / 1000);
    const signature = createHmac("sha256", this.#key(subscription))
      .update(`${id}.${seconds}.${body}`)
      .digest("base64");
    const answer = await this.#agent.request({
      origin: this.#origin,
      path: pathOf(subscription),
      method: "POST",
      headers: {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": String(seconds),
        "webhook-signature": `v1,${signature}`,
      },
      body,
    });
    await answer.body.dump();
    if (answer.statusCode < 200 || answer.statusCode > 299) throw new Error(`HTTP ${answer.statusCode}`);
  }

  #key(subscription: number): KeyObject {
    let key = this.#keys.get(subscription);
    if (!key) {
      key = createSecretKey(Buffer.from(secretOf(subscription).slice("whsec_".length), "base64"));
      this.#keys.set(subscription, key);
    }
    return key;
  }

  close(): Promise<void> {
    return this.#agent.close();
  }
}
