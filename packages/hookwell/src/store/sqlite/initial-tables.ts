/** Step 1: every table. docs/decisions/0002-store-schema.md says what each is for. */
export const initialTables = `CREATE TABLE hookwell_meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE hookwell_subscription (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  url TEXT NOT NULL,
  url_host TEXT NOT NULL,
  event_types TEXT NOT NULL,
  fields TEXT,
  header_names TEXT NOT NULL,
  status TEXT NOT NULL,
  status_reason TEXT,
  description TEXT,
  metadata TEXT,
  external_id TEXT,
  rate_limit TEXT,
  max_in_flight INTEGER,
  ordering TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  status_changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_subscription_list ON hookwell_subscription (created_at, id);
CREATE INDEX hookwell_subscription_project ON hookwell_subscription (project_id, created_at, id);
CREATE INDEX hookwell_subscription_external ON hookwell_subscription (external_id, created_at, id)
  WHERE external_id IS NOT NULL;
CREATE INDEX hookwell_subscription_off ON hookwell_subscription (status, status_changed_at)
  WHERE status NOT IN ('active', 'paused');

CREATE TABLE hookwell_subscription_filter (
  project_id TEXT NOT NULL,
  filter TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  subscription_id TEXT NOT NULL,
  PRIMARY KEY (project_id, filter, owner_id, tenant_id, subscription_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_subscription_filter_owner ON hookwell_subscription_filter (subscription_id);

CREATE TABLE hookwell_endpoint (
  id TEXT PRIMARY KEY,
  subscription_id TEXT NOT NULL,
  url TEXT NOT NULL,
  sealed TEXT NOT NULL,
  superseded_by TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_endpoint_subscription ON hookwell_endpoint (subscription_id, created_at);

CREATE TABLE hookwell_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  subject TEXT,
  revision INTEGER,
  actor TEXT,
  audience TEXT,
  occurred_at INTEGER NOT NULL,
  captured_at INTEGER NOT NULL,
  content_hash TEXT NOT NULL,
  route TEXT NOT NULL,
  fanned_out INTEGER NOT NULL,
  state TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  error TEXT,
  dispatched_at INTEGER,
  data TEXT NOT NULL,
  patch TEXT
) STRICT;
CREATE UNIQUE INDEX hookwell_event_key ON hookwell_event (id, project_id);
CREATE UNIQUE INDEX hookwell_event_revision ON hookwell_event (subject, revision, project_id, tenant_id)
  WHERE subject IS NOT NULL AND revision IS NOT NULL;
CREATE INDEX hookwell_event_new ON hookwell_event (route, due_at, seq) WHERE state = 'new';
CREATE INDEX hookwell_event_list ON hookwell_event (captured_at, id);
CREATE INDEX hookwell_event_subject ON hookwell_event (subject, captured_at, id) WHERE subject IS NOT NULL;

CREATE TABLE hookwell_body (
  project_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  variant TEXT NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX hookwell_body_key ON hookwell_body (event_id, project_id, variant);

CREATE TABLE hookwell_delivery (
  id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  subscription_id TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  variant TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  attempts INTEGER NOT NULL,
  round INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  lease_token TEXT,
  lease_until INTEGER,
  error_code TEXT,
  last_error TEXT,
  last_status_code INTEGER,
  last_started_at INTEGER,
  last_duration_ms INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  delivered_at INTEGER,
  -- Place among the deliveries of its subject. One that waits for another has due_at 9e15.
  order_key TEXT,
  order_at INTEGER
) STRICT;
CREATE UNIQUE INDEX hookwell_delivery_id ON hookwell_delivery (id);
CREATE UNIQUE INDEX hookwell_delivery_pair ON hookwell_delivery (event_id, subscription_id);
CREATE INDEX hookwell_delivery_pending ON hookwell_delivery (subscription_id, due_at, id)
  WHERE status = 'pending';
CREATE INDEX hookwell_delivery_queue ON hookwell_delivery (subscription_id, order_key, order_at, id)
  WHERE status = 'pending' AND order_key IS NOT NULL;
CREATE INDEX hookwell_delivery_head ON hookwell_delivery (subscription_id, order_key)
  WHERE status = 'pending' AND order_key IS NOT NULL AND due_at < 9000000000000000;
CREATE INDEX hookwell_delivery_seen ON hookwell_delivery (subscription_id, order_key, order_at)
  WHERE order_key IS NOT NULL AND (attempts > 0 OR round > 1);
CREATE INDEX hookwell_delivery_list ON hookwell_delivery (created_at, id);
CREATE INDEX hookwell_delivery_lane ON hookwell_delivery (subscription_id, created_at, id);
CREATE INDEX hookwell_delivery_trouble ON hookwell_delivery (status, created_at, id)
  WHERE status NOT IN ('pending', 'delivered');
CREATE INDEX hookwell_delivery_ended ON hookwell_delivery (status, updated_at)
  WHERE status <> 'pending';

CREATE TABLE hookwell_attempt (
  delivery_id TEXT NOT NULL,
  round INTEGER NOT NULL,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  status_code INTEGER,
  error_code TEXT,
  error TEXT,
  response_excerpt TEXT
) STRICT;
CREATE UNIQUE INDEX hookwell_attempt_key ON hookwell_attempt (delivery_id, round, number);

CREATE TABLE hookwell_lane (
  subscription_id TEXT PRIMARY KEY,
  -- 1: a claim looks here. 0: not before next_due.
  ready INTEGER NOT NULL,
  -- 1: paused or disabled. 2: its pending rows are to be cancelled (deleted, or gone).
  held INTEGER NOT NULL,
  next_due INTEGER,
  hold_until INTEGER,
  -- Before this no claim looks: breaker, rate, or every slot taken.
  blocked_until INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER,
  breaks INTEGER NOT NULL DEFAULT 0,
  opened_at INTEGER,
  probe_step INTEGER,
  probe_at INTEGER,
  probe_id TEXT,
  -- Limits of the subscription, and what is used of them.
  rate_limit TEXT,
  rate_tat INTEGER NOT NULL DEFAULT 0,
  max_in_flight INTEGER,
  slots TEXT NOT NULL DEFAULT '{}',
  -- When a failed delivery was last told of, and how many failed since.
  reported_at INTEGER,
  unreported INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_lane_ready ON hookwell_lane (subscription_id) WHERE ready = 1 AND held = 0;
CREATE INDEX hookwell_lane_waiting ON hookwell_lane (next_due) WHERE ready = 0 AND held = 0;
CREATE INDEX hookwell_lane_closing ON hookwell_lane (subscription_id) WHERE held = 2;

CREATE TABLE hookwell_api_key (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  project_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER
) STRICT;
CREATE INDEX hookwell_api_key_list ON hookwell_api_key (created_at, id);
`;
