/**
 * What happened, by minute: a row for each project, and one with project '' for all of them. The indexes find lanes
 * that need somebody; their columns change when a lane begins to fail, not with each failure.
 */
export const countsMigration = `
CREATE TABLE hookwell_minute_count (
  minute INTEGER NOT NULL,
  project_id TEXT NOT NULL,
  dispatched INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  failed_attempts INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  PRIMARY KEY (minute, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_lane_failing ON hookwell_lane (failing_since) WHERE failing_since IS NOT NULL AND held = 0;
CREATE INDEX hookwell_lane_limited ON hookwell_lane (subscription_id) WHERE rate_limit IS NOT NULL AND held = 0;
`;
