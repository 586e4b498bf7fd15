import type { Actor } from "hookwell";
import { isHookwellError } from "hookwell";
import type { AppTransaction } from "../database/schema.ts";
import type { AppHooks } from "../hooks.ts";
import { ProblemError } from "../http/problem.ts";
import type { User } from "./user.ts";
import type { UserEvent } from "./user-events.ts";

/** A user event on its way out. The record gives project, tenant, time and revision. */
export interface UserEmission {
  readonly event: UserEvent;
  readonly user: User;
  readonly actor: Actor;
  /** Absent = every matching subscription without an owner. */
  readonly audience?: readonly string[];
}

/** Where a change's events, and what else belongs to a user, go: always in the change's own transaction. */
export interface UserOutlets {
  /** @throws ProblemError 503 when an event could not be captured: the change must not commit without it */
  emit(trx: AppTransaction, emissions: readonly UserEmission[]): Promise<void>;
  /** The webhook subscriptions that a user owns: disabled when it is archived, deleted with it. @throws ProblemError 503 */
  disableSubscriptions(trx: AppTransaction, user: User): Promise<void>;
  deleteSubscriptions(trx: AppTransaction, user: User): Promise<void>;
}

export function userOutlets(hooks: AppHooks): UserOutlets {
  async function ownedBy(user: User): Promise<string[]> {
    const filter = { projectId: user.projectId, ownerId: user.id };
    const ids: string[] = [];
    let page = await hooks.subscriptions.list(filter, { limit: 100 });
    ids.push(...page.items.map((subscription) => subscription.id));
    while (page.next) {
      page = await hooks.subscriptions.list(filter, { limit: 100, after: page.next });
      ids.push(...page.items.map((subscription) => subscription.id));
    }
    return ids;
  }

  return {
    async emit(trx, emissions) {
      const events = emissions.map(({ event, user, actor, audience }) => ({
        type: event.type,
        data: event.data,
        projectId: user.projectId,
        ...(user.tenantId === undefined ? {} : { tenantId: user.tenantId }),
        occurredAt: new Date(user.updatedAt),
        revision: user.revision,
        actor,
        ...(audience === undefined ? {} : { audience }),
      }));
      await hooks.emitMany(events, { tx: trx }).catch(notCaptured);
    },
    async disableSubscriptions(trx, user) {
      // It is told of by an event in the same transaction.
      for (const id of await ownedBy(user))
        await hooks.subscriptions.disable(id, { tx: trx }).catch(notCaptured);
    },
    async deleteSubscriptions(trx, user) {
      for (const id of await ownedBy(user)) await hooks.subscriptions.delete(id, { tx: trx });
    },
  };
}

function notCaptured(error: unknown): never {
  if (isHookwellError(error) && error.code === "revision_conflict")
    throw new ProblemError(
      "conflict",
      "This id belonged to a user that was deleted; leave it out, or choose another.",
      {
        errors: [{ pointer: "/id", message: "was used before" }],
        cause: error,
      },
    );
  throw new ProblemError(
    "event_not_captured",
    "The event of this change could not be recorded, so nothing was changed. Try again.",
    { cause: error },
  );
}
