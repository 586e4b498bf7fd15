/* What answers look like, for the description of the API. One story: an order is paid, and a warehouse is told. */

const madeAt = "2026-01-31T12:00:00.000Z";
const paidAt = "2026-01-31T12:05:00.000Z";

export const subscriptionExample = {
  id: "sub_0198a6d2-7c1e-7d55-9f6b-2b1c6f9a4a10",
  project_id: "live",
  tenant_id: null,
  owner_id: null,
  url: "https://example.com/webhooks",
  event_types: ["order.*"],
  fields: null,
  header_names: ["authorization"],
  status: "active",
  status_reason: null,
  description: "Warehouse",
  metadata: { team: "logistics" },
  external_id: null,
  rate_limit: { limit: 50, per_seconds: 1 },
  max_in_flight: null,
  ordering: "none",
  created_at: madeAt,
  updated_at: madeAt,
} as const;

export const deliveryExample = {
  id: "dlv_5f0d6a3c1b2e4f708192a3b4c5d6e7f8",
  event_id: "order-42-paid",
  subscription_id: subscriptionExample.id,
  type: "order.paid",
  subject: "order:42",
  status: "pending",
  reason: null,
  hold: null,
  attempts: 1,
  error_code: "http_503",
  last_error: "The receiver answered 503.",
  next_attempt_at: "2026-01-31T12:05:06.000Z",
  created_at: paidAt,
  updated_at: "2026-01-31T12:05:01.000Z",
  delivered_at: null,
} as const;

export const eventExample = {
  id: deliveryExample.event_id,
  type: deliveryExample.type,
  project_id: "live",
  tenant_id: null,
  subject: "order:42",
  revision: 3,
  actor: null,
  audience: null,
  occurred_at: paidAt,
  captured_at: paidAt,
  state: "dispatched",
  outcome: "pending",
  error: null,
  data: { id: "42", total: 1250 },
} as const;

export const explanationExample = {
  subscription_id: "sub_0198a6d2-9d20-7a31-8c44-51de2a77b9c3",
  matched: false,
  rule: "type",
  detail: "Its event types (refund.*) do not cover order.paid.",
  delivery_id: null,
  delivery_status: null,
} as const;

export const keyExample = {
  id: "key_0198a6d2-3f10-7b42-a1d5-0c9e8d7f6a5b",
  name: "checkout service",
  scopes: ["emit"],
  project_id: "live",
  created_at: madeAt,
  expires_at: null,
  last_used_at: paidAt,
} as const;

export const problemExample = {
  type: "urn:hookwell:error:validation_failed",
  title: "Bad request",
  status: 400,
  detail: "/url: must be a url such as https://example.com/webhooks",
  code: "validation_failed",
  request_id: "41fa9089-24de-4a8d-be8d-359fa8496439",
  errors: [{ pointer: "/url", message: "must be a url such as https://example.com/webhooks" }],
} as const;
