import type { DeliveryRecord } from "../../model/delivery.ts";
import { accounts, reports, type Visible } from "./accounts.ts";
import { type Evidence, isAnswered } from "./evidence.ts";
import { contents, existence, signatures } from "./said.ts";
import { limits, order, promptness, restraint, uniqueness } from "./sent.ts";

/** Everything that can be said when the world has come to rest, before anything is retried by hand. */
export function judge(evidence: Evidence, visible: Visible): void {
  for (const check of [existence, contents, signatures, uniqueness, restraint, promptness, limits, order])
    check(evidence);
  accounts(evidence, visible);
  reports(evidence, visible);
}

/** What remains to be said after all that had failed was retried. */
export function judgeRetried(evidence: Evidence, retried: readonly DeliveryRecord[]): void {
  evidence.look();
  for (const { id, eventId } of retried)
    evidence.hold(
      "6 an abandoned delivery can be tried again",
      evidence.byDelivery.get(id)?.some(isAnswered) ?? false,
      () => `${id} of ${eventId} was retried and its receiver never got it`,
    );
  const witness = evidence.world.subscribers[0]!;
  for (const { eventId } of evidence.committed.values())
    evidence.hold(
      "1 an event exists if, and only if, its change was committed",
      evidence.of(eventId, witness).some(isAnswered),
      () => `${eventId} was committed, and who is subscribed to everything never got it`,
    );
}
