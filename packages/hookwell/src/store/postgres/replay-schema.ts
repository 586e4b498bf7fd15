/** The step that adds replays. docs/decisions/0033-replays.md says what each part is for. */
export const replaySchema = `CREATE TABLE @.replay (
  id text COLLATE "C" PRIMARY KEY,
  -- Whose it is: the parts of its selection, '' where that does not say.
  project_id text COLLATE "C" NOT NULL,
  tenant_id text COLLATE "C" NOT NULL,
  owner_id text COLLATE "C" NOT NULL,
  subscription_id text COLLATE "C",
  selection text NOT NULL,
  statuses text NOT NULL,
  since bigint NOT NULL,
  until bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  -- How far it has come: everything up to and with this (time, id) of the phase is dealt with.
  phase text COLLATE "C" NOT NULL,
  walk_at bigint NOT NULL,
  walk_id text COLLATE "C" NOT NULL,
  next_at bigint NOT NULL,
  count bigint NOT NULL,
  -- Events noted in replay_missing.
  noted bigint NOT NULL DEFAULT 0,
  queued bigint NOT NULL DEFAULT 0,
  skipped bigint NOT NULL DEFAULT 0,
  delivered bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  error text,
  created_at bigint NOT NULL,
  finished_at bigint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX replay_by_time ON @.replay (created_at, id);
CREATE INDEX replay_running ON @.replay (next_at, id) WHERE status = 'running';
CREATE INDEX replay_ended ON @.replay (finished_at) WHERE finished_at IS NOT NULL;

-- Events that a replay found without a delivery, until somebody who may has rendered them.
CREATE TABLE @.replay_missing (
  replay_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  subscription_id text COLLATE "C" NOT NULL,
  route text COLLATE "C" NOT NULL,
  due_at bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  PRIMARY KEY (replay_id, event_id)
);
CREATE INDEX replay_missing_due ON @.replay_missing (route, due_at, replay_id, event_id);

-- What became of replayed rows, until it is counted: whoever records an outcome waits for no replay.
CREATE TABLE @.replay_tally (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  replay_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX replay_tally_of ON @.replay_tally (replay_id, id);

-- The replay that opened the present round of a delivery.
ALTER TABLE @.delivery ADD COLUMN replay_id text COLLATE "C";
CREATE INDEX delivery_replay ON @.delivery (replay_id, created_at, id) WHERE replay_id IS NOT NULL;

-- Rows become final in many places; the counters of a replay are kept in this one.
CREATE FUNCTION @.count_replayed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO @.replay_tally (replay_id, status) VALUES (OLD.replay_id, NEW.status);
  RETURN NULL;
END
$$;
CREATE TRIGGER delivery_replayed AFTER UPDATE OF status ON @.delivery FOR EACH ROW
WHEN (OLD.replay_id IS NOT NULL AND OLD.status = 'pending' AND NEW.status <> 'pending')
EXECUTE FUNCTION @.count_replayed();
`;
