/** What an operator holds, and the lanes that have rows set aside for it; `@` stands for the schema. */
export const holdTables = `CREATE TABLE @.hold (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  kind text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  reason text,
  held_by text,
  created_at bigint NOT NULL,
  UNIQUE (kind, value)
);
CREATE TABLE @.hold_lane (
  seq bigint NOT NULL,
  subscription_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (seq, subscription_id)
);
`;
