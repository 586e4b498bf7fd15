/** The step that adds replays. docs/decisions/0033-replays.md says what each part is for. */
export const replayTables = `CREATE TABLE hookwell_replay (
  id TEXT PRIMARY KEY,
  -- Whose it is: the parts of its selection, '' where that does not say.
  project_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  subscription_id TEXT,
  selection TEXT NOT NULL,
  statuses TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  status TEXT NOT NULL,
  -- How far it has come: everything up to and with this (time, id) of the phase is dealt with.
  phase TEXT NOT NULL,
  walk_at INTEGER NOT NULL,
  walk_id TEXT NOT NULL,
  next_at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  -- Events noted in hookwell_replay_missing.
  noted INTEGER NOT NULL DEFAULT 0,
  queued INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_replay_list ON hookwell_replay (created_at, id);
CREATE INDEX hookwell_replay_running ON hookwell_replay (next_at, id) WHERE status = 'running';
CREATE INDEX hookwell_replay_ended ON hookwell_replay (finished_at) WHERE finished_at IS NOT NULL;

-- Events that a replay found without a delivery, until somebody who may has rendered them.
CREATE TABLE hookwell_replay_missing (
  replay_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  subscription_id TEXT NOT NULL,
  route TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (replay_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_replay_missing_due ON hookwell_replay_missing (route, due_at, replay_id, event_id);

-- The replay that opened the present round of a delivery.
ALTER TABLE hookwell_delivery ADD COLUMN replay_id TEXT;
CREATE INDEX hookwell_delivery_replay ON hookwell_delivery (replay_id, created_at, id)
  WHERE replay_id IS NOT NULL;

-- Rows become final in many places; the counters of a replay are kept in this one.
CREATE TRIGGER hookwell_delivery_replayed AFTER UPDATE OF status ON hookwell_delivery
WHEN old.replay_id IS NOT NULL AND old.status = 'pending' AND new.status <> 'pending'
BEGIN
  UPDATE hookwell_replay SET
    delivered = delivered + (new.status = 'delivered'),
    failed = failed + (new.status = 'failed'),
    cancelled = cancelled + (new.status = 'cancelled')
  WHERE id = old.replay_id;
END;
`;
