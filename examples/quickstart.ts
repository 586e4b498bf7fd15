import { DatabaseSync } from "node:sqlite";
import { createHookwell, defineEvents } from "hookwell";
import { nodeSqlite } from "hookwell/node-sqlite";
import { sqliteStore } from "hookwell/sqlite";
import { z } from "zod";

const hooks = createHookwell({
  store: sqliteStore({ path: "app.db", migrate: true }),
  tx: nodeSqlite(),
  project: "live",
  events: defineEvents({ "user.created": { schema: z.object({ id: z.string() }) } }),
});
await hooks.ready();
hooks.start();
const db = new DatabaseSync("app.db");
db.exec("CREATE TABLE IF NOT EXISTS users (id TEXT)");
hooks.transaction(db, (tx) => {
  tx.prepare("INSERT INTO users VALUES (?)").run("u1");
  hooks.emitSync("user.created", { id: "u1" }, { tx });
});
