import { answers, startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { type StoreKind, startWorld } from "./support/world.ts";

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("secrets on %s", (kind) => {
  test("field-faults G6: the secret, header values and keys are in no answer but the first, no log and no webhook", async () => {
    await using world = await startWorld(kind, {
      retry: { maxAttempts: 2, baseDelay: 1_000, maxDelay: 1_000 },
    });
    await using receiver = await startReceiver({ respond: answers({ status: 500, body: "no" }) });
    const headerValue = "Bearer header-value-that-nobody-may-see";
    const chosen = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwTg1n";
    const body = { project_id: "live", url: receiver.url, headers: { authorization: headerValue } };
    const made = await world.ok(201, "POST", "/v1/subscriptions", { body });
    const given = await world.ok(201, "POST", "/v1/subscriptions", { body: { ...body, secret: chosen } });
    const key = await world.ok(201, "POST", "/v1/keys", { body: { name: "k", scopes: ["admin"] } });
    const { secret: rotated } = await world.ok(200, "POST", `/v1/subscriptions/${made.id}/rotate-secret`);
    // The four answers that may show them.
    world.answers.length = 0;

    const { id: event } = await world.ok(202, "POST", "/v1/events", {
      body: { project_id: "live", type: "a.b", data: { x: 1 } },
    });
    for (let n = 0; n < 2; n++) {
      await world.work();
      world.clock.advance(1_000);
    }
    const subscription = `/v1/subscriptions/${made.id}`;
    const { items } = await world.ok(200, "GET", "/v1/deliveries");
    expect(items.map((item: { status: string }) => item.status)).toEqual(["failed", "failed"]);
    for (const [method, path, sent] of [
      ["GET", subscription],
      ["GET", "/v1/subscriptions"],
      ["PATCH", subscription, { description: "d", headers: { authorization: headerValue, "x-b": "1\n" } }],
      ["PATCH", subscription, { headers: { authorization: headerValue } }],
      ["PATCH", subscription, { url: `${receiver.url}/2` }],
      ["POST", `${subscription}/pause`],
      ["POST", `${subscription}/resume`],
      ["POST", `${subscription}/disable`],
      ["POST", `${subscription}/enable`],
      ["POST", "/v1/subscriptions", { ...body, secret: `${chosen} ` }],
      ["POST", `${subscription}/rotate-secret`, { secret: `${chosen} ` }],
      ["GET", `/v1/events/${event}`],
      ["GET", `/v1/deliveries/${items[0].id}`],
      ["GET", `/v1/deliveries/${items[1].id}`],
      ["POST", `/v1/deliveries/${items[0].id}/retry`],
      ["POST", `/v1/deliveries/${items[0].id}/cancel`],
      ["GET", "/v1/keys"],
      ["GET", "/openapi.json"],
      ["GET", "/docs"],
      ["GET", "/readyz"],
      ["GET", "/healthz/delivery"],
      ["DELETE", `/v1/subscriptions/${given.id}`],
    ] as const)
      await world.call(method, path, { body: sent, key: key.key });
    await world.ok(204, "DELETE", `/v1/keys/${key.id}`);

    const webhooks = receiver.requests.map((request) => {
      const { authorization, ...headers } = request.headers;
      expect(authorization).toBe(headerValue);
      return `${JSON.stringify(headers)}\n${request.body}`;
    });
    expect(world.logs.length).toBeGreaterThan(0);
    const everything = [...world.answers, ...world.logs, ...webhooks].join("\n");
    for (const secret of [made.secret, rotated, given.secret, headerValue, key.key, world.adminKey]) {
      const bare = secret.replace(/^(whsec_|hwk_|Bearer )/, "");
      expect(everything).not.toContain(bare);
      expect(everything).not.toContain(Buffer.from(secret).toString("base64"));
    }
  });
});
