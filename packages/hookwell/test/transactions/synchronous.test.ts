import { DatabaseSync } from "node:sqlite";
import {
  AsyncSchemaError,
  ConfigurationError,
  createHookwell,
  defineEvents,
  NotInTransactionError,
} from "hookwell";
import { kysely, sqliteDialect } from "hookwell/kysely";
import { nodeSqlite } from "hookwell/node-sqlite";
import { sqliteStore } from "hookwell/sqlite";
import { Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { freshSqlite } from "../support/databases.ts";
import { encryptionKeys, quiet } from "./host.ts";

const events = defineEvents({
  "account.opened": { schema: z.object({ id: z.string() }) },
  "account.checked": { schema: z.object({ id: z.string().refine(async () => true) }), jsonSchema: {} },
});

let file: ReturnType<typeof freshSqlite>;
let store: ReturnType<typeof sqliteStore>;
let database: DatabaseSync;
beforeEach(async () => {
  file = freshSqlite();
  store = sqliteStore({ path: file.path, encryptionKeys, migrate: true });
  await store.open({ withKeys: true });
  database = new DatabaseSync(file.path, { timeout: 5_000 });
  database.exec("CREATE TABLE account (id text PRIMARY KEY)");
});
afterEach(async () => {
  database.close();
  await store.close();
  file.drop();
});

const accounts = () =>
  database
    .prepare("SELECT id FROM account ORDER BY id")
    .all()
    .map(({ id }) => id);
const eventIds = async () => (await store.listEvents({}, { limit: 100 })).items.map(({ id }) => id).sort();
const insert = (tx: DatabaseSync, id: string) => tx.prepare("INSERT INTO account VALUES (?)").run(id);

describe("hooks.transaction", () => {
  const made = () => createHookwell({ store, tx: nodeSqlite(), project: "live", events, logger: quiet });

  test("begins, commits, and answers what the function answers", async () => {
    const hooks = made();
    const result = hooks.transaction(database, (tx) => {
      insert(tx, "a");
      return hooks.emitSync("account.opened", { id: "a" }, { tx, id: "opened-a" });
    });
    expect(result).toEqual({ id: "opened-a", duplicate: false });
    expect(accounts()).toEqual(["a"]);
    expect(await eventIds()).toEqual(["opened-a"]);
    expect(database.isTransaction).toBe(false);
  });

  test("rolls back when the function throws, or its COMMIT fails", async () => {
    const hooks = made();
    const declined = () =>
      hooks.transaction(database, (tx) => {
        insert(tx, "a");
        hooks.emitSync("account.opened", { id: "a" }, { tx });
        throw new Error("declined");
      });
    expect(declined).toThrow("declined");
    database.exec("PRAGMA foreign_keys = ON");
    database.exec("CREATE TABLE part (of text REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED)");
    const dangling = () =>
      hooks.transaction(database, (tx) => {
        tx.exec("INSERT INTO part VALUES ('nobody')");
        hooks.emitSync("account.opened", { id: "b" }, { tx });
      });
    expect(dangling).toThrow(/FOREIGN KEY/);
    expect(database.isTransaction).toBe(false);
    expect(accounts()).toEqual([]);
    expect(await eventIds()).toEqual([]);
  });

  test("refuses a function that returns a promise, and rolls its first part back", async () => {
    const hooks = made();
    const loosely = hooks.transaction as (database: unknown, fn: (tx: DatabaseSync) => unknown) => unknown;
    let later: Promise<void> | undefined;
    const work = () =>
      loosely(database, (tx) => {
        later = (async () => {
          insert(tx, "a");
          hooks.emitSync("account.opened", { id: "a" }, { tx });
          await Promise.resolve();
          hooks.emitSync("account.opened", { id: "late" }, { tx });
        })();
        return later;
      });
    expect(work).toThrow(/returned a promise/);
    await expect(later).rejects.toThrow(NotInTransactionError);
    expect(accounts()).toEqual([]);
    expect(await eventIds()).toEqual([]);
  });

  test("an emitSync that throws rolls the caller's transaction back", async () => {
    const hooks = made();
    const work = () =>
      hooks.transaction(database, (tx) => {
        insert(tx, "a");
        hooks.emitSync("account.checked", { id: "a" }, { tx });
      });
    expect(work).toThrow(AsyncSchemaError);
    expect(accounts()).toEqual([]);
    expect(database.isTransaction).toBe(false);
  });

  test("an asynchronous emit refuses the raw handle, also through another adapter", async () => {
    const hooks = made();
    const asynchronous = createHookwell({ store, tx: kysely(), project: "live", events, logger: quiet });
    database.exec("BEGIN IMMEDIATE");
    const tx = database as never;
    await expect(hooks.emit("account.opened", { id: "a" }, { tx })).rejects.toThrow(/emitSync/);
    await expect(hooks.subscriptions.create({ url: "https://a.example/" }, { tx })).rejects.toThrow(
      ConfigurationError,
    );
    await expect(asynchronous.emit("account.opened", { id: "a" }, { tx })).rejects.toThrow(
      NotInTransactionError,
    );
    database.exec("COMMIT");
    expect(await eventIds()).toEqual([]);
  });

  test("a host that makes every integer a bigint, or every row a list, is joined all the same", async () => {
    const hooks = made();
    const odd = new DatabaseSync(file.path, { readBigInts: true, returnArrays: true, timeout: 5_000 });
    hooks.transaction(odd, (tx) =>
      hooks.emitSync("account.opened", { id: "a" }, { tx, id: "e", revision: 1 }),
    );
    const again = hooks.transaction(odd, (tx) =>
      hooks.emitSync("account.opened", { id: "a" }, { tx, id: "e", revision: 1 }),
    );
    expect(again.duplicate).toBe(true);
    odd.close();
    expect(await eventIds()).toEqual(["e"]);
  });
});

describe("sqliteDialect", () => {
  test("its transactions begin IMMEDIATE and run one after the other on the connection", async () => {
    const db = new Kysely<{ account: { id: string } }>({ dialect: sqliteDialect({ database }) });
    const hooks = createHookwell({
      store,
      tx: kysely<{ account: { id: string } }>(),
      project: "live",
      events,
    });
    const other = new DatabaseSync(file.path);
    const steps: string[] = [];
    const one = db.transaction().execute(async (trx) => {
      steps.push("one begins");
      expect(() => other.exec("BEGIN IMMEDIATE")).toThrow(/locked|busy/i);
      await hooks.emit("account.opened", { id: "1" }, { tx: trx, id: "one" });
      await sql`select 1`.execute(trx);
      steps.push("one ends");
    });
    const two = db.transaction().execute(async (trx) => {
      steps.push("two begins");
      await hooks.emit("account.opened", { id: "2" }, { tx: trx, id: "two" });
      steps.push("two ends");
    });
    await Promise.all([one, two]);
    other.close();
    expect(steps).toEqual(["one begins", "one ends", "two begins", "two ends"]);
    expect(await eventIds()).toEqual(["one", "two"]);
  });

  test("answers rows, counts and inserted ids, and streams", async () => {
    interface DB {
      item: { n: number | null; name: string };
    }
    const own = new DatabaseSync(":memory:");
    const db = new Kysely<DB>({ dialect: sqliteDialect({ database: own }) });
    await db.schema
      .createTable("item")
      .addColumn("n", "integer", (c) => c.primaryKey())
      .addColumn("name", "text")
      .execute();
    const inserted = await db.insertInto("item").values({ n: null, name: "a" }).executeTakeFirst();
    expect(inserted.insertId).toBe(1n);
    await db.insertInto("item").values({ n: 7, name: "b" }).execute();
    const updated = await db.updateTable("item").set({ name: "c" }).executeTakeFirst();
    expect(updated.numUpdatedRows).toBe(2n);
    const returned = await db
      .insertInto("item")
      .values({ n: 9, name: "d" })
      .returning("n")
      .executeTakeFirst();
    expect(returned).toEqual({ n: 9 });
    const seen: unknown[] = [];
    for await (const row of db.selectFrom("item").select("n").orderBy("n").stream()) seen.push(row.n);
    expect(seen).toEqual([1, 7, 9]);
    // The same statement sees what changed since it was prepared, more of them than are kept prepared go on working,
    // and a stream that was left disturbs no one.
    const everything = db.selectFrom("item").selectAll().orderBy("n");
    expect(await everything.execute()).toHaveLength(3);
    await db.schema.alterTable("item").addColumn("more", "text").execute();
    expect(await everything.executeTakeFirst()).toEqual({ n: 1, name: "c", more: null });
    for (let n = 0; n < 250; n++)
      expect((await sql`select ${sql.lit(n)} as n`.execute(db)).rows).toEqual([{ n }]);
    for await (const row of everything.stream()) if (row.n === 7) break;
    expect(await everything.execute()).toHaveLength(3);
    await db.destroy();
    expect(() => own.exec("select 1")).toThrow(/not open/);
  });
});
