import type { ObservedEvents, Observer } from "../model/observe.ts";
import { version } from "../model/version.ts";
import { deliveryCodes, otherCodes } from "../send/delivery-codes.ts";
import { troubles } from "../store/stats-contract.ts";
import { attemptBuckets, type MetricDefinition, type MetricName, metricTable } from "./metric-table.ts";
import type { Stats } from "./stats.ts";

type Counting = {
  readonly [Name in keyof ObservedEvents]: (event: ObservedEvents[Name], metrics: Metrics) => void;
};

/** What each observable event counts as. */
const counting: Counting = {
  captured: ({ duplicate }, m) => m.add(duplicate ? "duplicates" : "captured"),
  dispatched: ({ deliveries }, m) => {
    m.add("dispatched");
    m.add("queued", deliveries);
  },
  dispatchFailed: (_, m) => m.add("dispatchFailures"),
  enrichFailed: (_, m) => m.add("enrichFailures"),
  parked: (_, m) => m.add("parked"),
  claimed: ({ deliveries }, m) => m.add("claimed", deliveries),
  attempted: ({ exchange, subscriptionId }, m) => {
    m.add("attempts", 1, resultOf(exchange.errorCode));
    m.time(exchange.durationMs / 1_000);
    if (exchange.errorCode !== undefined) m.addFor("subscriptionAttemptsFailed", subscriptionId);
  },
  delivered: ({ subscriptionId }, m) => {
    m.add("delivered");
    m.addFor("subscriptionDelivered", subscriptionId);
  },
  rescheduled: (_, m) => m.add("rescheduled"),
  failed: ({ subscriptionId }, m) => {
    m.add("failed");
    m.addFor("subscriptionFailed", subscriptionId);
  },
  cancelled: ({ deliveries }, m) => m.add("cancelled", deliveries),
  released: (_, m) => m.add("released"),
  leaseLost: (_, m) => m.add("leaseLost"),
  laneOpened: (_, m) => m.add("lanesOpened"),
  laneClosed: (_, m) => m.add("lanesClosed"),
  subscriptionDisabled: ({ reason }, m) => m.add("disabled", 1, reason),
  hookFailed: (_, m) => m.add("hookFailures"),
  storeLost: ({ loop }, m) => m.add("storeLost", 1, loop),
  storeRegained: () => {},
  pruned: ({ deliveries, events }, m) => {
    m.add("prunedDeliveries", deliveries);
    m.add("prunedEvents", events);
  },
  replayEnded: ({ status }, m) => m.add("replays", 1, status),
  warning: (_, m) => m.add("warnings"),
};

const knownCodes: ReadonlySet<string> = new Set([...deliveryCodes, ...otherCodes].map(({ code }) => code));

/** A bounded set of words: receivers choose status codes, and senders of an application any code. */
function resultOf(code: string | undefined): string {
  if (code === undefined) return "success";
  const status = /^http_([345])\d\d$/.exec(code)?.[1];
  if (status !== undefined) return `http_${status}xx`;
  return knownCodes.has(code) ? code : "other";
}

/** Subscriptions that have a label of their own at most. */
export const mostLabelledSubscriptions = 10_000;

/**
 * Counts what is observed in this process, and writes it in the Prometheus text format together with the gauges of
 * the database.
 */
export class Metrics {
  /** By metric, then by the value of its label; "" = no label. */
  readonly #counts = new Map<MetricName, Map<string, number>>();
  readonly #buckets: number[] = attemptBuckets.map(() => 0);
  readonly #labelled = new Set<string>();
  readonly #subscriptions: number;
  #seconds = 0;
  #attempts = 0;

  /** @param subscriptions how many get a label of their own, the first that are met; the rest is "other" */
  constructor(subscriptions = 0) {
    this.#subscriptions = subscriptions;
  }

  readonly observe: Observer = (name, event) => counting[name](event, this);

  add(metric: MetricName, by = 1, label = ""): void {
    const counts = this.#counts.get(metric) ?? new Map<string, number>();
    this.#counts.set(metric, counts);
    counts.set(label, (counts.get(label) ?? 0) + by);
  }

  addFor(metric: MetricName, subscriptionId: string): void {
    if (this.#subscriptions === 0) return;
    if (this.#labelled.size < this.#subscriptions) this.#labelled.add(subscriptionId);
    this.add(metric, 1, this.#labelled.has(subscriptionId) ? subscriptionId : "other");
  }

  time(seconds: number): void {
    this.#attempts++;
    this.#seconds += seconds;
    const bucket = attemptBuckets.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) this.#buckets[bucket]!++;
  }

  /** The page. Without stats the database could not be asked. */
  text(stats: Stats | undefined): string {
    const lines: string[] = [];
    for (const [key, definition] of Object.entries(metricTable) as [MetricName, MetricDefinition][]) {
      const samples = this.#samplesOf(key, definition, stats);
      if (samples.length === 0) continue;
      lines.push(
        `# HELP ${definition.name} ${escaped(definition.help)}`,
        `# TYPE ${definition.name} ${definition.type}`,
        ...samples,
      );
    }
    return `${lines.join("\n")}\n`;
  }

  #samplesOf(key: MetricName, definition: MetricDefinition, stats: Stats | undefined): string[] {
    const { name, labels, from, type } = definition;
    if (key === "info") return [sample(name, { version }, 1)];
    if (type === "histogram") return this.#histogram(name);
    if (from === "database") return gaugesOf(key, name, stats);
    const counts = this.#counts.get(key);
    const label = labels?.[0];
    if (label === undefined) return [sample(name, {}, counts?.get("") ?? 0)];
    return [...(counts ?? [])].map(([value, count]) => sample(name, { [label]: value }, count));
  }

  #histogram(name: string): string[] {
    let sum = 0;
    const buckets = attemptBuckets.map((bound, index) => {
      sum += this.#buckets[index]!;
      return sample(`${name}_bucket`, { le: String(bound) }, sum);
    });
    return [
      ...buckets,
      sample(`${name}_bucket`, { le: "+Inf" }, this.#attempts),
      sample(`${name}_sum`, {}, this.#seconds),
      sample(`${name}_count`, {}, this.#attempts),
    ];
  }
}

function gaugesOf(key: MetricName, name: string, stats: Stats | undefined): string[] {
  if (key === "storeUp") return [sample(name, {}, stats ? 1 : 0)];
  if (!stats) return [];
  const age = (since: Date | undefined): number =>
    since ? Math.max(0, stats.at.getTime() - since.getTime()) / 1_000 : 0;
  switch (key) {
    case "pending":
      return [sample(name, {}, stats.pending.count)];
    case "undispatched":
      return [sample(name, {}, stats.newEvents.count)];
    case "oldestDue":
      return [sample(name, {}, age(stats.oldestDueAt))];
    case "oldestUndispatched":
      return [sample(name, {}, age(stats.oldestNewAt))];
    case "holds":
      return [sample(name, {}, stats.holds)];
    case "lanes":
      return troubles.map((reason) => sample(name, { reason }, stats.lanes.counts[reason]));
    default:
      return [];
  }
}

function sample(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  );
  return `${name}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${value}`;
}

/** Of a help text; in a label's value quotation marks too. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
