// One life of the application: it answers a request or delivers what is there, and reports the point where it is to
// die. There the whole process stands still until it is killed.
import { writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type pg from "pg";
import { instead, type LifeOptions, openLife } from "./life.ts";
import type { CrashOrder, CrashPoint } from "./order.ts";

const order = JSON.parse(process.env.CRASH_ORDER ?? "") as CrashOrder;
const now = () => new Date(order.now);

function reach(point: CrashPoint): void {
  if (order.point !== point) return;
  writeSync(1, `POINT ${point}\n`);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

let hasDispatched = false;
const options: LifeOptions = {
  ...order.place,
  now,
  hooks: (real) =>
    instead(real, {
      async emitUnknown(...args) {
        const emitted = await real.emitUnknown(...args);
        // The last statement before COMMIT.
        reach("capture-commit");
        return emitted;
      },
    }),
  onKick: () => reach("commit-answer"),
  store: (real) =>
    instead(real, {
      async dispatch(items, at, room) {
        // With room for them it would claim the rows itself.
        const dispatched = await real.dispatch(
          items,
          at,
          order.point === "dispatch-claim" ? undefined : room,
        );
        hasDispatched = true;
        return dispatched;
      },
      claim(...args) {
        if (hasDispatched) reach("dispatch-claim");
        return real.claim(...args);
      },
    }),
  sender: (real) => ({
    async deliver(...args) {
      reach("claim-send");
      const receipt = await real.deliver(...args);
      reach("send-record");
      return receipt;
    },
  }),
  openSqlite(path, { readonly }) {
    const database = new DatabaseSync(path, { readOnly: readonly });
    let isDispatching = false;
    return {
      exec: (sql) => database.exec(sql),
      close: () => database.close(),
      prepare(sql) {
        const statement = database.prepare(sql);
        const look = (): void => {
          if (sql === "COMMIT" && isDispatching) reach("dispatch-commit");
          if (/INSERT INTO hookwell_delivery\b/.test(sql)) isDispatching = true;
        };
        return {
          all(...params) {
            look();
            return statement.all(...params);
          },
          run(...params) {
            look();
            return statement.run(...params);
          },
        };
      },
    };
  },
  pool: (real) => (order.point === "dispatch-commit" ? dispatchInTwoSteps(real) : real),
};

/** On PostgreSQL the dispatch is one statement: here it gets a transaction around it, which stays open. */
function dispatchInTwoSteps(real: pg.Pool): pg.Pool {
  const query = async (text: string, params: unknown[]) => {
    if (!/INSERT INTO "?hookwell"?\.delivery\b/.test(text)) return await real.query(text, params);
    const client = await real.connect();
    await client.query("BEGIN");
    const answer = await client.query(text, params);
    reach("dispatch-commit");
    return answer;
  };
  return instead(real, { query: query as pg.Pool["query"] });
}

const life = await openLife(options);
if (order.request === undefined) {
  const result = await life.hooks.drain({ deadlineMs: 30_000 });
  writeSync(1, `DRAINED ${JSON.stringify(result)}\n`);
} else {
  const { method, path, key, body } = order.request;
  const response = await fetch(life.url + path, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  writeSync(1, `ANSWER ${response.status} ${await response.text()}\n`);
}
await life.close();
process.exit(0);
