import { createHookwell } from "hookwell";
import { type ReceivedRequest, startReceiver } from "hookwell/testing";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { verify, verifyBodySignature } from "../../src/send/verify.ts";
import { kinds } from "../deliver/stores.ts";
import { loopback } from "../send/deliveries.ts";

const pending = 50;
const minute = 60_000;

/** What a receiver with this key makes of a request, by the reference library and by ours. */
function accepts({ headers, body }: ReceivedRequest, key: string): boolean {
  const verdicts = [
    () => new Webhook(key).verify(body, headers as Record<string, string>),
    () => verify(headers, body, key),
  ].map((check) => {
    try {
      check();
      return true;
    } catch {
      return false;
    }
  });
  expect(verdicts[0]).toBe(verdicts[1]);
  return verdicts[0]!;
}

const idOf = ({ headers }: ReceivedRequest): string => headers["webhook-id"] as string;
const signaturesOf = ({ headers }: ReceivedRequest): number =>
  (headers["webhook-signature"] as string).split(" ").length;
const bodySignatureOf = ({ headers }: ReceivedRequest): string => headers["x-hookwell-signature"] as string;

describe.each(kinds)("field-faults F8: rotation on $name", (kind) => {
  kind.use();

  /** Fifty events, tried once and refused; then time moves by hand, and `attempt` makes one attempt of each. */
  async function begin() {
    // It stands still, near the real time, which the reference library looks at.
    let time = Date.now();
    const clock = (): Date => new Date(time);
    let status = 503;
    const receiver = await startReceiver({ respond: () => status });
    const opened = await kind.open(clock);
    const hooks = createHookwell({
      store: opened.store,
      project: "live",
      clock,
      network: loopback,
      lanes: { breaker: false },
      retry: [1_000, 1_000],
      logger: { info() {}, warn() {}, error() {} },
    });
    const { id, secret: first } = await hooks.subscriptions.create({ url: receiver.url });
    const events = Array.from({ length: pending }, (_, n) => ({
      type: "seat.sold",
      data: { n, row: "Ä😀" },
    }));
    await hooks.emitMany(events, { tx: "own" });
    const attempt = async (answer: number): Promise<readonly ReceivedRequest[]> => {
      status = answer;
      const from = receiver.requests.length;
      await hooks.drain({ deadlineMs: 20_000 });
      return receiver.requests.slice(from);
    };
    const later = (ms: number): void => {
      time += ms;
    };
    const close = async (): Promise<void> => {
      await hooks.close();
      await opened.close();
      await receiver.close();
    };
    return { hooks, receiver, id, first, attempt, later, [Symbol.asyncDispose]: close };
  }

  test("field-faults F8: 50 pending verify before; with the old and the new key in the window; with the new one after", async () => {
    await using world = await begin();
    const { hooks, id, first, attempt, later } = world;
    const before = await attempt(503);
    expect(before).toHaveLength(pending);
    for (const request of before) expect(accepts(request, first)).toBe(true);
    const bodySignatures = new Map(before.map((r) => [idOf(r), bodySignatureOf(r)]));

    const { secret: second } = await hooks.subscriptions.rotateSecret(id, { overlapMs: minute });
    expect(second).toMatch(/^whsec_/);
    await hooks.emit("seat.sold", { late: true }, { tx: "own" });
    later(minute - 5_000);
    const during = await attempt(503);
    expect(during).toHaveLength(pending + 1);
    for (const request of during) {
      expect(accepts(request, first)).toBe(true);
      expect(accepts(request, second)).toBe(true);
      expect(signaturesOf(request)).toBe(2);
      // What was bound before keeps its body signature; the late one is bound to the new secret.
      const bound = bodySignatures.get(idOf(request));
      const signature = bodySignatureOf(request);
      if (bound) expect(signature).toBe(bound);
      expect(verifyBodySignature(request.body, signature, bound ? first : second)).toBe(true);
    }

    // The address moves too, in the window: neither the rotation nor its end is forgotten.
    await hooks.subscriptions.update(id, { url: `${world.receiver.url}/moved` });
    later(5_000);
    const after = await attempt(200);
    expect(after).toHaveLength(pending + 1);
    for (const request of after) {
      expect(request.path).toBe("/hook/moved");
      expect(accepts(request, first)).toBe(false);
      expect(accepts(request, second)).toBe(true);
      expect(signaturesOf(request)).toBe(1);
      expect(verifyBodySignature(request.body, bodySignatureOf(request), second)).toBe(true);
    }
    const sent = (requests: readonly ReceivedRequest[]) =>
      new Map(requests.map((request) => [idOf(request), request.body.toString("utf8")]));
    expect(sent(after)).toEqual(sent(during));
  });

  // The rule is the store contract's; what is new here is the wire, which is the same over every store.
  if (kind.name === "PostgreSQL") return;
  test("field-faults F8: an overlap of 0 ends a leaked secret at once, a default one does not end for a day", async () => {
    await using world = await begin();
    const { hooks, id, first, attempt, later } = world;
    const plain = "a-plain-secret-of-our-own";
    expect((await hooks.subscriptions.rotateSecret(id, { secret: plain })).secret).toBe(plain);
    const during = await attempt(503);
    expect(during).toHaveLength(pending);
    for (const request of during) {
      expect(accepts(request, first)).toBe(true);
      expect(verify(request.headers, request.body, plain).id).toBe(idOf(request));
    }
    const { secret: last } = await hooks.subscriptions.rotateSecret(id, { overlapMs: 0 });
    later(1_000);
    const after = await attempt(200);
    expect(after).toHaveLength(pending);
    for (const request of after) {
      expect(accepts(request, last)).toBe(true);
      expect(accepts(request, first)).toBe(false);
      expect(() => verify(request.headers, request.body, plain)).toThrow();
    }
  });
});
