import { bulkCancelRules } from "./bulk-cancel-rules.ts";
import { captureRules } from "./capture-rules.ts";
import { changeRules } from "./change-rules.ts";
import { circuitRules } from "./circuit-rules.ts";
import { claimRules } from "./claim-rules.ts";
import { dispatchClaimRules } from "./dispatch-claim-rules.ts";
import { dispatchRules } from "./dispatch-rules.ts";
import { endpointRules } from "./endpoint-rules.ts";
import { failingRules } from "./failing-rules.ts";
import type { StoreHarness, TestRunner } from "./harness.ts";
import { holdRules } from "./hold-rules.ts";
import { inspectionRules } from "./inspection-rules.ts";
import { keyRules } from "./key-rules.ts";
import { laneRules } from "./lane-rules.ts";
import { limitRules } from "./limit-rules.ts";
import { listRules } from "./list-rules.ts";
import { managementRules } from "./management-rules.ts";
import { markRules } from "./mark-rules.ts";
import { matchingRules } from "./matching-rules.ts";
import { missingRules } from "./missing-rules.ts";
import { orderRules } from "./order-rules.ts";
import { outcomeRules } from "./outcome-rules.ts";
import { referenceRules } from "./reference-rules.ts";
import { replayRules } from "./replay-rules.ts";
import { requestRules } from "./request-rules.ts";
import type { Rule } from "./rule.ts";
import { secretRules } from "./secret-rules.ts";
import { statsRules } from "./stats-rules.ts";
import { StoreWorld } from "./store-world.ts";
import { textRules } from "./text-rules.ts";
import { transactionRules } from "./transaction-rules.ts";
import { upkeepRules } from "./upkeep-rules.ts";

const chapters: Readonly<Record<string, (rule: Rule) => void>> = {
  "reference methods": referenceRules,
  "reference marks": markRules,
  claims: claimRules,
  lanes: laneRules,
  "circuit breaker": circuitRules,
  "limits of a subscription": limitRules,
  "failing subscriptions": failingRules,
  ordering: orderRules,
  holds: holdRules,
  outcomes: outcomeRules,
  endpoints: endpointRules,
  "signing secrets": secretRules,
  capture: captureRules,
  transactions: transactionRules,
  matching: matchingRules,
  dispatch: dispatchRules,
  "dispatch that claims": dispatchClaimRules,
  management: managementRules,
  "concurrent changes": changeRules,
  lists: listRules,
  texts: textRules,
  upkeep: upkeepRules,
  inspection: inspectionRules,
  replays: replayRules,
  "missing deliveries": missingRules,
  "bulk cancel": bulkCancelRules,
  stats: statsRules,
  "API keys": keyRules,
  "idempotent requests": requestRules,
};

/** Runs every rule of the store contract on stores that the harness makes. */
export function storeContract(name: string, harness: StoreHarness, runner: TestRunner): void {
  runner.describe(`store contract: ${name}`, () => {
    for (const [chapter, rules] of Object.entries(chapters))
      runner.describe(chapter, () => {
        rules((rule, body) => {
          runner.test(rule, () => runRule(harness, body));
        });
      });
  });
}

async function runRule(harness: StoreHarness, body: (world: StoreWorld) => Promise<void>): Promise<void> {
  const world = new StoreWorld();
  let made = 0;
  world.use(await harness.make({ now: world.now, idFunc: () => `end_${++made}` }));
  try {
    await body(world);
  } finally {
    await world.subject.close();
  }
}
