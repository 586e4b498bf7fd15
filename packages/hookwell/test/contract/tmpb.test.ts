import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import { describe, test } from "vitest";
import { kysely, sqliteDialect } from "../../src/adapters/kysely.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { captureRules } from "../../src/testing/contract/capture-rules.ts";
import { claimRules } from "../../src/testing/contract/claim-rules.ts";
import { dispatchRules } from "../../src/testing/contract/dispatch-rules.ts";
import { endpointRules } from "../../src/testing/contract/endpoint-rules.ts";
import { laneRules } from "../../src/testing/contract/lane-rules.ts";
import { matchingRules } from "../../src/testing/contract/matching-rules.ts";
import { outcomeRules } from "../../src/testing/contract/outcome-rules.ts";
import { referenceRules } from "../../src/testing/contract/reference-rules.ts";
import { StoreWorld } from "../../src/testing/contract/store-world.ts";
import { transactionRules } from "../../src/testing/contract/transaction-rules.ts";
import { freshSqlite } from "../support/databases.ts";

for (const [chapter, rules] of Object.entries({
  captureRules,
  claimRules,
  dispatchRules,
  endpointRules,
  laneRules,
  matchingRules,
  outcomeRules,
  referenceRules,
  transactionRules,
}))
  describe(chapter, () =>
    rules((name, body) =>
      test(name, async () => {
        const world = new StoreWorld();
        let made = 0;
        const { path, drop } = freshSqlite();
        const make = async () => {
          const s = sqliteStore({
            path,
            migrate: true,
            now: world.now,
            idFunc: () => `end_${++made}`,
            logger: console,
          });
          await s.open({ withKeys: true });
          return s;
        };
        const stores = [await make()];
        const db = new Kysely<unknown>({
          dialect: sqliteDialect({ database: new DatabaseSync(path, { timeout: 5000 }) }),
        });
        const adapter = kysely<unknown>();
        world.use({
          store: stores[0]!,
          transaction: (fn) =>
            db.transaction().execute((tx) => fn({ kind: "async", adapter: adapter as never, tx })),
          reopen: async () => {
            const s = await make();
            stores.push(s);
            return s;
          },
          close: async () => {
            await db.destroy();
            for (const s of stores) await s.close();
            drop();
          },
        });
        try {
          await body(world);
        } finally {
          await world.subject.close();
        }
      }),
    ),
  );
