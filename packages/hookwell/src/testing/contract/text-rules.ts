import type { Outcome } from "../../model/delivery.ts";
import { like, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { own, proof } from "./store-world.ts";

/** NUL and lone surrogates become U+FFFD in free text; everything else comes back as it was. */
export function textRules(rule: Rule): void {
  const given = "a\u0000b \ud800 \udc00x é 🂡 \u2028 \u202e ' \" \\ % $1 ?";
  const kept = "a\ufffdb \ufffd \ufffdx é 🂡 \u2028 \u202e ' \" \\ % $1 ?";

  rule("field-faults I1: error, code and excerpt of an attempt", async (t) => {
    await t.enqueue("dlv_1");
    const exchange = t.failure({
      error: given,
      errorCode: "send_failed",
      excerpt: `${given}${"z".repeat(4_000)}`,
    });
    await t.store.record([{ ...proof(await t.claimOne()), kind: "retry", exchange, delayMs: 0 }], null);
    like(await t.store.getDelivery("dlv_1", {}), { lastError: kept });
    like((await t.store.listAttempts("dlv_1"))[0], { error: kept, excerpt: `${kept}${"z".repeat(4_000)}` });
    like(await t.claimOne(), { lastError: kept });
  });

  rule(
    "field-faults I1: one text that must be mended does not keep the rest of the batch from being recorded",
    async (t) => {
      for (const id of ["dlv_1", "dlv_2", "dlv_3"]) await t.enqueue(id);
      const outcomes = (await t.claim()).map((row): Outcome => {
        if (row.id !== "dlv_2") return t.delivered(row);
        return {
          ...proof(row),
          kind: "failed",
          exchange: t.failure(),
          reason: "r\u0000",
          errorCode: "c\u0000",
          error: given,
        };
      });
      same((await t.store.record(outcomes, null)).recorded.length, 3);
      like(await t.store.getDelivery("dlv_2", {}), {
        reason: "r\ufffd",
        errorCode: "c\ufffd",
        lastError: kept,
      });
    },
  );

  rule("field-faults I1: last errors of the reference marks and of an enqueued row", async (t) => {
    await t.enqueue("dlv_1", { lastError: given });
    await t.enqueue("dlv_2");
    like(await t.store.get("dlv_1"), { lastError: kept });
    await t.store.reschedule("dlv_1", 1, `1${given}`, t.now());
    await t.store.markFailed("dlv_2", 1, `2${given}`);
    like(await t.store.get("dlv_1"), { lastError: `1${kept}` });
    like(await t.store.get("dlv_2"), { lastError: `2${kept}` });
  });

  rule("field-faults I1: description, external id and metadata of a subscription", async (t) => {
    const metadata = { note: "é 🂡 \\u0000 \n\t" };
    like(await t.subscribe("sub_a", { description: given, externalId: given, metadata }), {
      description: kept,
      externalId: kept,
      metadata,
    });
    like(
      await t.store.updateSubscription(
        own,
        "sub_a",
        { description: `x${given}`, externalId: `y${given}` },
        {},
      ),
      {
        description: `x${kept}`,
        externalId: `y${kept}`,
      },
    );
    like(await t.store.getSubscription("sub_a", {}), {
      description: `x${kept}`,
      externalId: `y${kept}`,
      metadata,
    });
  });

  rule("field-faults I1: header values and secrets come back exactly", async (t) => {
    const headers = { "X-Name": "ünï\ttab", "x-long": "v".repeat(5_000) };
    await t.subscribe("sub_a", { headers, secret: "plain é 🂡 secret" });
    await t.publish("evt_1");
    like(await t.claimOne(), { headers, secret: "plain é 🂡 secret" });
  });

  rule("field-faults I1: why an event could not be dispatched", async (t) => {
    await t.capture(t.event("evt_1"));
    await t.store.failDispatch({ projectId: "live", id: "evt_1" }, given, null, null);
    like(await t.store.getEvent("evt_1", {}), { error: kept });
  });

  rule("field-faults I1: names in subject, tenant, actor and audience are kept exactly", async (t) => {
    const name = "ж 🂡 é e\u0301 '\" \\ % $1 ?";
    const event = t.event("evt_1", {
      subject: name,
      tenantId: name,
      actor: { type: name, id: name },
      audience: [name, "u"],
    });
    await t.capture(event);
    like(await t.store.getEvent("evt_1", { tenantId: name, ownerId: name }), {
      subject: name,
      tenantId: name,
      actor: { type: name, id: name },
      audience: [name, "u"],
    });
    same((await t.store.listEvents({ subject: name, tenantId: name }, { limit: 5 })).items.length, 1);
    await t.subscribe("sub_a", { tenantId: name, ownerId: name });
    same((await t.publish("evt_2", { tenantId: name, audience: [name] })).length, 1);
  });

  rule("field-faults I2, I1: data, patch and bodies are kept byte for byte", async (t) => {
    const data = `{"id":9007199254740993,"z":1,"a":2,"e":1e21,"m":-0,"text":"\\u0000 \\ud800 é 🂡 \u2028"}`;
    await t.subscribe("sub_a");
    const event = t.event("evt_1", { data });
    await t.capture(event);
    same((await t.store.takeNew(["user.created"], 1, null))[0]!.data, data);
    const [[match] = []] = await t.store.matchSubscriptions([{ projectId: "live", filters: [""] }]);
    const bytes = Buffer.from(data);
    const delivery = { id: "dlv_1", subscriptionId: "sub_a", endpointId: match!.endpointId, variant: "v" };
    await t.store.dispatch(
      [
        {
          projectId: "live",
          id: "evt_1",
          bodies: [{ variant: "v", bytes }],
          deliveries: [delivery],
          patch: data,
        },
      ],
      null,
    );
    like(await t.store.getEvent("evt_1", {}), { data, patch: data });
    like(await t.claimOne(), { payload: bytes });
  });

  rule("field-faults I3: a body of 256 KiB and more goes through", async (t) => {
    await t.subscribe("sub_a");
    const body = JSON.stringify({ notes: "é🂡".repeat(45_000) });
    const event = t.emitted("evt_1", { data: body });
    await t.capture({ ...event, fanOut: { ...event.fanOut!, body } });
    like(await t.claimOne(), { payload: Buffer.from(body) });
  });
}
