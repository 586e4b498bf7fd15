import type { Migration } from "../migrations.ts";
import { captureFunction } from "./capture-function.ts";
import { countsMigration } from "./counts-migration.ts";
import { holdTables } from "./hold-tables.ts";
import { replaySchema } from "./replay-schema.ts";
import { requestTables } from "./request-tables.ts";

// Every text that is compared or ordered is COLLATE "C": ids sort by code unit, as in the other stores, whatever
// the locale of the database. Times are epoch milliseconds. `@` stands for the schema.
const initial = `
CREATE TABLE @.meta (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);
CREATE TABLE @.migration (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at bigint NOT NULL,
  compatible_from integer NOT NULL
);

CREATE TABLE @.subscription (
  id text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C" NOT NULL,
  tenant_id text COLLATE "C" NOT NULL DEFAULT '',
  owner_id text COLLATE "C" NOT NULL DEFAULT '',
  url text NOT NULL,
  url_host text COLLATE "C" NOT NULL,
  event_types text NOT NULL,
  fields text,
  header_names text NOT NULL,
  status text COLLATE "C" NOT NULL,
  status_reason text COLLATE "C",
  description text,
  metadata text,
  external_id text COLLATE "C",
  rate_limit text,
  max_in_flight integer,
  ordering text COLLATE "C" NOT NULL DEFAULT 'none',
  endpoint_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  status_changed_at bigint NOT NULL
);
CREATE INDEX subscription_by_time ON @.subscription (created_at, id);
CREATE INDEX subscription_by_project ON @.subscription (project_id, created_at, id);
CREATE INDEX subscription_external ON @.subscription (external_id, created_at, id) WHERE external_id IS NOT NULL;
-- Upkeep looks only at what was stopped.
CREATE INDEX subscription_stopped ON @.subscription (status, status_changed_at) WHERE status IN ('disabled', 'deleted');

-- What matching looks up, with every part of the rule in the key: an event reaches its subscriptions by exact
-- probes, however many other tenants and owners the project has.
CREATE TABLE @.subscription_filter (
  project_id text COLLATE "C" NOT NULL,
  filter text COLLATE "C" NOT NULL,
  owner_id text COLLATE "C" NOT NULL,
  tenant_id text COLLATE "C" NOT NULL,
  subscription_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (project_id, filter, owner_id, tenant_id, subscription_id)
);
CREATE INDEX subscription_filter_of ON @.subscription_filter (subscription_id);

CREATE TABLE @.endpoint (
  id text COLLATE "C" PRIMARY KEY,
  subscription_id text COLLATE "C" NOT NULL,
  url text NOT NULL,
  sealed text NOT NULL,
  superseded_by text COLLATE "C",
  created_at bigint NOT NULL
);
CREATE INDEX endpoint_of ON @.endpoint (subscription_id);

CREATE TABLE @.event (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  project_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  tenant_id text COLLATE "C" NOT NULL DEFAULT '',
  subject text COLLATE "C",
  revision bigint,
  actor text,
  audience text,
  occurred_at bigint NOT NULL,
  captured_at bigint NOT NULL,
  data text NOT NULL,
  content_hash text COLLATE "C" NOT NULL,
  route text COLLATE "C" NOT NULL,
  fanned_out boolean NOT NULL DEFAULT false,
  patch text,
  state text COLLATE "C" NOT NULL DEFAULT 'new',
  due_at bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  error text,
  dispatched_at bigint,
  PRIMARY KEY (id, project_id)
);
-- Also how the events of one subject are found; those without a revision are all different here.
CREATE UNIQUE INDEX event_subject ON @.event (subject, revision, project_id, tenant_id) WHERE subject IS NOT NULL;
CREATE INDEX event_new ON @.event (route, due_at, seq) WHERE state = 'new';
CREATE INDEX event_by_time ON @.event (captured_at, id);

CREATE TABLE @.body (
  project_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  variant text COLLATE "C" NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (event_id, project_id, variant)
);

CREATE TABLE @.delivery (
  id text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  subscription_id text COLLATE "C" NOT NULL,
  endpoint_id text COLLATE "C" NOT NULL,
  variant text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'pending',
  reason text COLLATE "C",
  attempts integer NOT NULL DEFAULT 0,
  round integer NOT NULL DEFAULT 1,
  next_attempt_at bigint NOT NULL,
  due_at bigint NOT NULL,
  lease_token text COLLATE "C",
  lease_until bigint,
  error_code text COLLATE "C",
  last_error text,
  last_status_code integer,
  last_started_at bigint,
  last_duration_ms bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  delivered_at bigint,
  order_key text COLLATE "C",
  order_at bigint
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
-- The event first: it is also how the deliveries of one event are found.
CREATE UNIQUE INDEX delivery_pair ON @.delivery (event_id, subscription_id);
CREATE INDEX delivery_pending ON @.delivery (subscription_id, due_at, id) WHERE status = 'pending';
-- Deliveries of one subject, one after the other; one that waits for another has due_at 9e15.
CREATE INDEX delivery_queue ON @.delivery (subscription_id, order_key, order_at, id)
  WHERE status = 'pending' AND order_key IS NOT NULL;
CREATE INDEX delivery_head ON @.delivery (subscription_id, order_key)
  WHERE status = 'pending' AND order_key IS NOT NULL AND due_at < 9000000000000000;
CREATE INDEX delivery_seen ON @.delivery (subscription_id, order_key, order_at)
  WHERE order_key IS NOT NULL AND (attempts > 0 OR round > 1);
CREATE INDEX delivery_by_time ON @.delivery (created_at, id);
CREATE INDEX delivery_by_lane ON @.delivery (subscription_id, created_at, id);
CREATE INDEX delivery_trouble ON @.delivery (status, created_at, id) WHERE status IN ('failed', 'cancelled');
-- Retention takes the oldest ends first.
CREATE INDEX delivery_ended ON @.delivery (status, updated_at, id) WHERE status IN ('delivered', 'failed', 'cancelled');

CREATE TABLE @.attempt (
  delivery_id text COLLATE "C" NOT NULL,
  round integer NOT NULL,
  number integer NOT NULL,
  started_at bigint NOT NULL,
  duration_ms bigint NOT NULL,
  status_code integer,
  error_code text COLLATE "C",
  error text,
  response_excerpt text,
  PRIMARY KEY (delivery_id, round, number)
);

-- ready: a claim looks here; otherwise not before next_due. held: 1 = paused or disabled, 2 = its pending rows are
-- to be cancelled (deleted, gone). blocked_until: no claim looks before it (breaker, rate, every slot taken).
-- rate_limit and max_in_flight are copies of the subscription's. guarded: a claim locks the lane and writes it.
-- rate_burst and rate_interval (microseconds) are the cells of store/lane-state.ts.
CREATE TABLE @.lane (
  subscription_id text COLLATE "C" PRIMARY KEY,
  ready boolean NOT NULL DEFAULT true,
  held smallint NOT NULL DEFAULT 0,
  next_due bigint,
  hold_until bigint,
  blocked_until bigint,
  failures integer NOT NULL DEFAULT 0,
  failing_since bigint,
  breaks integer NOT NULL DEFAULT 0,
  opened_at bigint,
  probe_step bigint,
  probe_at bigint,
  probe_id text COLLATE "C",
  rate_limit text,
  rate_tat bigint NOT NULL DEFAULT 0,
  max_in_flight integer,
  slots jsonb NOT NULL DEFAULT '{}',
  reported_at bigint,
  unreported integer NOT NULL DEFAULT 0,
  rate_burst bigint GENERATED ALWAYS AS (least((rate_limit::jsonb ->> 'limit')::bigint, greatest(1, ((rate_limit::jsonb ->> 'limit')::bigint * 50 + (rate_limit::jsonb ->> 'perSeconds')::bigint * 1000 - 1) / ((rate_limit::jsonb ->> 'perSeconds')::bigint * 1000)))) STORED,
  rate_interval bigint GENERATED ALWAYS AS (
    ((rate_limit::jsonb ->> 'perSeconds')::bigint * 1000 * 1000 + (rate_limit::jsonb ->> 'limit')::bigint - least((rate_limit::jsonb ->> 'limit')::bigint, greatest(1, ((rate_limit::jsonb ->> 'limit')::bigint * 50 + (rate_limit::jsonb ->> 'perSeconds')::bigint * 1000 - 1) / ((rate_limit::jsonb ->> 'perSeconds')::bigint * 1000)))) / ((rate_limit::jsonb ->> 'limit')::bigint - least((rate_limit::jsonb ->> 'limit')::bigint, greatest(1, ((rate_limit::jsonb ->> 'limit')::bigint * 50 + (rate_limit::jsonb ->> 'perSeconds')::bigint * 1000 - 1) / ((rate_limit::jsonb ->> 'perSeconds')::bigint * 1000))) + 1)) STORED,
  guarded boolean GENERATED ALWAYS AS (
    opened_at IS NOT NULL OR rate_limit IS NOT NULL OR max_in_flight IS NOT NULL) STORED
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX lane_ready ON @.lane (subscription_id) WHERE ready AND held = 0;
CREATE INDEX lane_waiting ON @.lane (next_due) WHERE NOT ready AND held = 0;
CREATE INDEX lane_closing ON @.lane (subscription_id) WHERE held = 2;

-- Capture must not write a lane, but a repeated emit may add deliveries to an event that was dispatched long ago.
-- It leaves a note here, in the same transaction, and the next claim readies the lane. Rows only come and go.
CREATE TABLE @.lane_wake (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subscription_id text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE @.api_key (
  id text COLLATE "C" PRIMARY KEY,
  hash text COLLATE "C" NOT NULL UNIQUE,
  name text NOT NULL,
  scopes text NOT NULL,
  project_id text COLLATE "C",
  created_at bigint NOT NULL,
  expires_at bigint,
  last_used_at bigint
);
CREATE INDEX api_key_by_time ON @.api_key (created_at, id);
`;

/** Operators look for parked events where all is well, too: without it that reads every event. */
const parkedEvents = "CREATE INDEX event_parked ON @.event (captured_at, id) WHERE state = 'parked';\n";

/** Every step of the schema, oldest first; `@` stands for the quoted schema name. */
export const migrations: readonly Migration[] = [
  { version: 1, name: "initial", compatibleFrom: 1, sql: initial.trimStart() },
  { version: 2, name: "idempotent_requests", compatibleFrom: 1, sql: requestTables },
  { version: 3, name: "parked_events", compatibleFrom: 1, sql: parkedEvents },
  { version: 4, name: "replays", compatibleFrom: 1, sql: replaySchema },
  { version: 5, name: "minute_counts", compatibleFrom: 1, sql: countsMigration.trimStart() },
  { version: 6, name: "holds", compatibleFrom: 1, sql: holdTables },
  { version: 7, name: "capture_function", compatibleFrom: 1, sql: captureFunction },
];
