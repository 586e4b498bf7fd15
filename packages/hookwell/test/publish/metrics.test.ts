import { expect, test } from "vitest";
import { metricTable } from "../../src/publish/metric-table.ts";
import { Metrics } from "../../src/publish/metrics.ts";
import { readPrometheus } from "../support/prometheus.ts";

const moment = (subscriptionId: string) => ({
  deliveryId: "dlv_1",
  eventId: "evt_1",
  subscriptionId,
  attempt: 1,
});

test("subscriptions have a label only as many as were asked for: the rest is other", () => {
  const metrics = new Metrics(2);
  for (const id of ["sub_a", "sub_b", "sub_c", "sub_d", "sub_a"]) metrics.observe("delivered", moment(id));
  const samples = readPrometheus(metrics.text(undefined)).get(
    "hookwell_subscription_delivered_total",
  )?.samples;
  expect(samples?.map(({ labels, value }) => [labels.subscription_id, value])).toEqual([
    ["sub_a", 2],
    ["sub_b", 1],
    ["other", 2],
  ]);
});

test("label values are escaped, and a code that a sender makes up is no label of its own", () => {
  const metrics = new Metrics(1);
  const strange = 'sub_"\\\n}';
  metrics.observe("delivered", moment(strange));
  for (const errorCode of ["http_503", "http_499", "timeout", "made_up_1", "made_up_2"])
    metrics.observe("attempted", {
      ...moment(strange),
      exchange: { startedAt: new Date(0), durationMs: 20_000, errorCode },
    });
  const page = readPrometheus(metrics.text(undefined));
  expect(page.get("hookwell_subscription_delivered_total")?.samples[0]?.labels.subscription_id).toBe(strange);
  expect(page.get("hookwell_attempts_total")?.samples.map(({ labels }) => labels.result)).toEqual([
    "http_5xx",
    "http_4xx",
    "timeout",
    "other",
  ]);
});

test("names follow the conventions: counters end in _total, times are seconds, each is named once", () => {
  const definitions = Object.values(metricTable);
  expect(new Set(definitions.map(({ name }) => name)).size).toBe(definitions.length);
  for (const { name, type } of definitions) {
    expect(name).toMatch(/^hookwell_[a-z_]+$/);
    expect(name.endsWith("_total")).toBe(type === "counter");
    expect(name).not.toMatch(/_ms|milli/);
  }
});
