import { DatabaseSync } from "node:sqlite";
import { type } from "arktype";
import { createHookwell, defineEvents, type EmitResult, type HookwellCore, MemoryOutbox } from "hookwell";
import { kysely } from "hookwell/kysely";
import { nodeSqlite } from "hookwell/node-sqlite";
import { pgTx } from "hookwell/pg";
import type { Kysely, Transaction } from "kysely";
import type pg from "pg";
import * as v from "valibot";
import { z } from "zod";

// What compiles and what must not: checked by tsc, never run.
interface DB {
  users: { id: string };
}
declare const client: pg.PoolClient;
declare const pool: pg.Pool;
declare const trx: Transaction<DB>;
declare const db: Kysely<DB>;
declare const data: unknown;
const store = new MemoryOutbox();
const user = { id: "1", email: "a@example.com" };

const events = defineEvents({
  "user.created": {
    schema: z.object({ id: z.string(), email: z.string(), plan: z.string().default("free") }),
    subject: (u) => `user:${u.id}:${u.plan.length}`,
    fields: { always: ["id"], default: ["plan"], optional: { email: { personal: true } } },
    envelope: (event, u) => ({ event: event.type, plan: u.plan.toUpperCase() }),
    enrich: async (batch) => new Map(batch.map((e) => [e.id, { plan: e.data.plan }])),
    example: user,
  },
  "order.paid": { schema: v.object({ total: v.number() }), jsonSchema: { type: "object" } },
  "notice.sent": { schema: type({ text: "string" }), broadcast: true },
});

// --- definitions ---------------------------------------------------------
// @ts-expect-error valibot tells no JSON Schema, so it must be given
defineEvents({ "a.b": { schema: v.object({ total: v.number() }) } });
// @ts-expect-error the data has no such field
defineEvents({ "a.b": { schema: z.object({ id: z.string() }), fields: { always: ["idd"] } } });
// @ts-expect-error the data has no such property
defineEvents({ "a.b": { schema: z.object({ id: z.string() }), subject: (d) => d.idd } });
// @ts-expect-error a setting that does not exist
defineEvents({ "a.b": { schema: z.object({ id: z.string() }), fanout: "emit" } });
// @ts-expect-error no such way of fan-out
defineEvents({ "a.b": { schema: z.object({ id: z.string() }), fanOut: "later" } });
// @ts-expect-error an example that the schema would not take
defineEvents({ "a.b": { schema: z.object({ id: z.string() }), example: { id: 1 } } });
// @ts-expect-error not a schema
defineEvents({ "a.b": { schema: { id: "string" } } });

// --- asynchronous clients --------------------------------------------------
const hooks = createHookwell({ store, tx: kysely<DB>(), project: "live", events });
const result: Promise<EmitResult> = hooks.emit("user.created", user, { tx: trx });
void result;
void hooks.emit("user.created", { ...user, plan: "pro" }, { tx: "own", tenantId: "t" });
void hooks.emit("order.paid", { total: 5 }, { tx: trx });
void hooks.emit("notice.sent", { text: "hello" }, { tx: trx });
// @ts-expect-error a typo in the type
void hooks.emit("user.craeted", user, { tx: trx });
// @ts-expect-error data of another type
void hooks.emit("order.paid", user, { tx: trx });
// @ts-expect-error a field is missing
void hooks.emit("user.created", { id: "1" }, { tx: trx });
// @ts-expect-error no transaction
void hooks.emit("user.created", user, {});
// @ts-expect-error no options at all
void hooks.emit("user.created", user);
// @ts-expect-error the database itself is no transaction
void hooks.emit("user.created", user, { tx: db });
// @ts-expect-error a transaction of another client
void hooks.emit("user.created", user, { tx: client });
// @ts-expect-error undefined is no transaction either
void hooks.emit("user.created", user, { tx: undefined });
// @ts-expect-error only "own" may stand for a transaction
void hooks.emit("user.created", user, { tx: "none" });
// @ts-expect-error not an option
void hooks.emit("user.created", user, { tx: trx, tenant: "t" });
// @ts-expect-error emitSync exists for synchronous clients only
hooks.emitSync("user.created", user, { tx: trx });
// @ts-expect-error transaction() too
hooks.transaction(db, () => 1);

void hooks.emitMany(
  [
    { type: "user.created", data: user, tenantId: "t" },
    { type: "order.paid", data: { total: 1 } },
  ],
  { tx: trx },
);
// @ts-expect-error data of another type
void hooks.emitMany([{ type: "order.paid", data: user }], { tx: trx });
// @ts-expect-error no transaction
void hooks.emitMany([{ type: "order.paid", data: { total: 1 } }], {});

const onPg = createHookwell({ store, tx: pgTx(), events });
void onPg.emit("user.created", user, { tx: client });
// @ts-expect-error a Pool is no transaction
void onPg.emit("user.created", user, { tx: pool });

// --- tenants ---------------------------------------------------------------
const strict = createHookwell({ store, tx: kysely<DB>(), tenants: "required", events });
void strict.emit("user.created", user, { tx: trx, tenantId: "t" });
void strict.emit("notice.sent", { text: "to all" }, { tx: trx });
// @ts-expect-error tenants are required
void strict.emit("user.created", user, { tx: trx });
// @ts-expect-error tenants are required
void strict.emitMany([{ type: "order.paid", data: { total: 1 } }], { tx: trx });
// @ts-expect-error no such mode
createHookwell({ store, tenants: "sometimes" });

// --- synchronous clients ---------------------------------------------------
const database = new DatabaseSync(":memory:");
const sync = createHookwell({ store, tx: nodeSqlite(), events });
const done: EmitResult = sync.emitSync("user.created", user, { tx: database });
void done;
void sync.emit("user.created", user, { tx: "own" });
// @ts-expect-error an asynchronous emit must not join a synchronous transaction
void sync.emit("user.created", user, { tx: database });
// @ts-expect-error a synchronous emit has no transaction of its own
sync.emitSync("user.created", user, { tx: "own" });
// @ts-expect-error a typo in the type
sync.emitSync("user.craeted", user, { tx: database });
const five: number = sync.transaction(database, () => 5);
void five;
// @ts-expect-error a transaction must not await
sync.transaction(database, async () => 5);

// --- without adapter or events ----------------------------------------------
const open = createHookwell({ store });
void open.emit("anything.at_all", { any: data }, { tx: "own" });
// @ts-expect-error without an adapter no transaction is known
void open.emit("anything.at_all", {}, { tx: trx });

// --- the core that server and CLI take ----------------------------------------
const cores: HookwellCore[] = [hooks, onPg, strict, sync, open];
void cores;
void hooks.subscriptions.create({ url: "https://example.com" }, { tx: trx });
// @ts-expect-error a url is needed
void hooks.subscriptions.create({});
// @ts-expect-error a subscription's project cannot be changed
void hooks.subscriptions.update("sub_1", { projectId: "other" });
