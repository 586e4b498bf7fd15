/**
 * What happened, by minute. One row for each project and slot, and one with project '' for all of them. A slot is
 * held by one transaction at a time, so nobody waits for a count. The indexes find lanes that need somebody; their
 * columns change when a lane begins to fail, not with each failure.
 */
export const countsMigration = `
CREATE TABLE @.minute_count (
  minute bigint NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  slot text COLLATE "C" NOT NULL,
  dispatched bigint NOT NULL,
  delivered bigint NOT NULL,
  failed_attempts bigint NOT NULL,
  failed bigint NOT NULL,
  PRIMARY KEY (minute, project_id, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX lane_failing ON @.lane (failing_since) WHERE failing_since IS NOT NULL AND held = 0;
CREATE INDEX lane_limited ON @.lane (subscription_id) WHERE rate_limit IS NOT NULL AND held = 0;
`;
