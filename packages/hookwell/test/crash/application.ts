import { defineEvents } from "hookwell";

// The schema is written out, without a library for it: hundreds of processes start faster.
const schema = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value: unknown) => ({ value: value as { id: string } }),
  },
} as const;

/** What the applications of the crash tests publish: a thing, by the id of its row. */
export const events = defineEvents({ "thing.made": { schema, jsonSchema: { type: "object" } } });
export const network = { allow: ["127.0.0.0/8"], http: true };
/** A row may be claimed by hundreds of processes that die; it is never given up. */
export const retry = Array.from({ length: 1_000 }, () => 1_000);
/** Paths of the two subscriptions that every event goes to. */
export const endpoints = ["a", "b"] as const;
