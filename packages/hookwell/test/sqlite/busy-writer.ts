import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { event, hostScope } from "./support.ts";

// One application process, as SQLite sees it: a connection of its own in a thread of its own.
const { path, writer, count } = workerData as { path: string; writer: number; count: number };
const store = sqliteStore({ path });
const database = new DatabaseSync(path, { timeout: 20_000 });
const errors: string[] = [];
for (let i = 0; i < count; i++) {
  const id = `evt_${writer}_${i}`;
  // Every third one begins DEFERRED, and captures first: the lock is taken by Hookwell's statement.
  const deferred = (writer + i) % 3 === 0;
  try {
    database.exec(deferred ? "BEGIN" : "BEGIN IMMEDIATE");
    if (!deferred) database.prepare("INSERT INTO business (id) VALUES (?)").run(id);
    store.captureSync(hostScope(database), [event(id)]);
    if (deferred) database.prepare("INSERT INTO business (id) VALUES (?)").run(id);
    database.exec("COMMIT");
  } catch (error) {
    errors.push(`${id}: ${error instanceof Error ? error.message : String(error)}`);
    if (database.isTransaction) database.exec("ROLLBACK");
  }
}
database.close();
parentPort!.postMessage(errors);
