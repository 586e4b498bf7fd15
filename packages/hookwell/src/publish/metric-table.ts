/** One metric, as docs/reference/metrics.md shows it. Public: names and labels are added to, and not changed. */
export interface MetricDefinition {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels?: readonly string[];
  /** `process`: what this process did. `database`: the same from every process on one database. */
  readonly from: "process" | "database";
}

const counter = (name: string, help: string, ...labels: string[]): MetricDefinition => ({
  name: `hookwell_${name}_total`,
  type: "counter",
  help,
  from: "process",
  ...(labels.length > 0 && { labels }),
});

const gauge = (name: string, help: string, ...labels: string[]): MetricDefinition => ({
  name: `hookwell_${name}`,
  type: "gauge",
  help,
  from: "database",
  ...(labels.length > 0 && { labels }),
});

export const metricTable = {
  info: { ...gauge("info", "Always 1; the version of Hookwell is the label.", "version"), from: "process" },
  captured: counter("events_captured", "Events written into a transaction, which may have rolled back."),
  duplicates: counter("events_duplicate", "Events that were emitted again and were there already."),
  dispatched: counter("events_dispatched", "Events matched with subscriptions."),
  queued: counter("deliveries_queued", "Deliveries that dispatching these events made."),
  dispatchFailures: counter("dispatch_failures", "Tries of the dispatcher that failed."),
  enrichFailures: counter("enrich_failures", "Calls of an enrich function that failed or were late."),
  parked: counter("events_parked", "Events that the dispatcher gave up."),
  claimed: counter("deliveries_claimed", "Deliveries taken to be sent."),
  attempts: counter(
    "attempts",
    "HTTP exchanges that ended, by what came of them: success, http_3xx, http_4xx, http_5xx, or an error code.",
    "result",
  ),
  attemptSeconds: {
    name: "hookwell_attempt_duration_seconds",
    type: "histogram",
    help: "How long exchanges took, from the connection to the end of the answer.",
    from: "process",
  },
  delivered: counter("deliveries_delivered", "Deliveries recorded as delivered."),
  rescheduled: counter("deliveries_rescheduled", "Failed attempts recorded that are tried again."),
  failed: counter("deliveries_failed", "Deliveries recorded as given up."),
  cancelled: counter(
    "deliveries_cancelled",
    "Deliveries that upkeep cancelled, their subscription being gone.",
  ),
  released: counter("deliveries_released", "Deliveries given back unsent."),
  leaseLost: counter("leases_lost", "Outcomes that were not recorded, the lease being over."),
  lanesOpened: counter("circuits_opened", "Circuits that opened."),
  lanesClosed: counter("circuits_closed", "Circuits that closed."),
  disabled: counter(
    "subscriptions_disabled",
    "Subscriptions that Hookwell disabled: failing or gone.",
    "reason",
  ),
  replays: counter("replays_ended", "Replays that came to their end: done or failed.", "status"),
  hookFailures: counter("failure_hook_errors", "Calls of the failure hook that threw."),
  storeLost: counter("store_lost", "Times that a loop could not reach its store.", "loop"),
  prunedDeliveries: counter("pruned_deliveries", "Deliveries deleted after their retention."),
  prunedEvents: counter("pruned_events", "Events deleted after their retention."),
  warnings: counter("warnings", "Things that work, but not as they should; the log has the words."),
  subscriptionDelivered: counter(
    "subscription_delivered",
    "Deliveries recorded as delivered, by subscription: only where it was asked for.",
    "subscription_id",
  ),
  subscriptionAttemptsFailed: counter(
    "subscription_failed_attempts",
    "Exchanges that ended in no 2xx, by subscription: only where it was asked for.",
    "subscription_id",
  ),
  subscriptionFailed: counter(
    "subscription_failed",
    "Deliveries recorded as given up, by subscription: only where it was asked for.",
    "subscription_id",
  ),
  storeUp: gauge(
    "store_up",
    "1 when the database answered for this page; at 0 the other gauges are left out.",
  ),
  pending: gauge("pending_deliveries", "Deliveries that are pending, counted up to 10,000."),
  undispatched: gauge("undispatched_events", "Events that are not dispatched yet, counted up to 10,000."),
  oldestDue: gauge(
    "oldest_due_age_seconds",
    "How long the oldest due delivery of a lane that nothing holds has waited; 0 = there is none.",
  ),
  oldestUndispatched: gauge(
    "oldest_undispatched_age_seconds",
    "How long the oldest undispatched event has waited; 0 = there is none.",
  ),
  holds: gauge("holds", "Holds of the operator that are in force: what they cover is not sent."),
  lanes: gauge(
    "lanes_needing_attention",
    "Subscriptions by what is wrong: circuit_open, failing, rate_limited or disabled; 1,000 of a kind at most.",
    "reason",
  ),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof metricTable;

/** Upper bounds of the buckets of exchanges, in seconds. */
export const attemptBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15] as const;
