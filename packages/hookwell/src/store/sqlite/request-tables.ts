/** Requests with an idempotency key; `sealed` = the answer. */
export const requestTables = `CREATE TABLE hookwell_idempotent_request (
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  token TEXT NOT NULL,
  began_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  sealed TEXT,
  PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX hookwell_idempotent_request_age ON hookwell_idempotent_request (began_at);
CREATE INDEX hookwell_api_key_project ON hookwell_api_key (project_id, created_at, id);
`;
