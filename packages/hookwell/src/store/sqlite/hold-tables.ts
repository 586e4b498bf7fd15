/** What an operator holds, and the lanes that have rows set aside for it. docs/decisions says why. */
export const holdTables = `CREATE TABLE hookwell_hold (
  -- Never used again: it is part of the due time of what is set aside.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  reason TEXT,
  held_by TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE (kind, value)
) STRICT;

CREATE TABLE hookwell_hold_lane (
  seq INTEGER NOT NULL,
  subscription_id TEXT NOT NULL,
  PRIMARY KEY (seq, subscription_id)
) STRICT, WITHOUT ROWID;
`;
