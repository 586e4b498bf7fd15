/** Requests with an idempotency key; `sealed` = the answer. `@` stands for the schema. */
export const requestTables = `CREATE TABLE @.idempotent_request (
  owner text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  token text COLLATE "C" NOT NULL,
  began_at bigint NOT NULL,
  lease_until bigint NOT NULL,
  sealed text,
  PRIMARY KEY (owner, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX idempotent_request_by_time ON @.idempotent_request (began_at);
CREATE INDEX api_key_by_project ON @.api_key (project_id, created_at, id);
`;
