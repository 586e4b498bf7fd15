import type { SubscriptionRecord } from "hookwell";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import type { AppHooks } from "../hooks.ts";
import type { User } from "../users/user.ts";
import type { ReceiverSecrets } from "./receiver-secrets.ts";
import { type ReceiverDefinition, receiverExternalId, receivers, receiverUrl } from "./receivers.ts";

export interface ReceiverSubscriptionDeps {
  readonly hooks: AppHooks;
  readonly secrets: ReceiverSecrets;
  /** Where this process is reached from this machine, such as `http://127.0.0.1:8787`. */
  readonly origin: string;
}

/** Makes the subscriptions of the receiver page, in the transaction of the first run. */
export async function createReceiverSubscriptions(
  deps: ReceiverSubscriptionDeps,
  trx: AppTransaction,
  admin: User,
): Promise<void> {
  for (const receiver of receivers) await create(deps, trx, receiver, admin);
}

/**
 * On every start: a subscription whose address is not this process's any more (another PORT) is moved to it,
 * with what waits for it; one whose secret is lost (another machine, or the file was removed) is replaced. One
 * that an operator deleted stays away.
 */
export async function keepReceiverSubscriptions(
  deps: ReceiverSubscriptionDeps,
  db: AppDatabase,
  admin: User,
): Promise<void> {
  const { hooks, secrets, origin } = deps;
  for (const receiver of receivers) {
    const subscription = await find(hooks, admin.projectId, receiver);
    if (subscription === undefined) continue;
    const url = receiverUrl(origin, receiver.name);
    if (secrets.get(receiver.name) === undefined)
      await inTransaction(db, async (trx) => {
        await hooks.subscriptions.delete(subscription.id, { tx: trx });
        await create(deps, trx, receiver, admin);
      });
    else if (subscription.url !== url) await hooks.subscriptions.update(subscription.id, { url });
  }
}

async function create(
  { hooks, secrets, origin }: ReceiverSubscriptionDeps,
  trx: AppTransaction,
  receiver: ReceiverDefinition,
  admin: User,
): Promise<void> {
  await hooks.subscriptions.create(
    {
      projectId: admin.projectId,
      ...(receiver.owned ? { ownerId: admin.id } : {}),
      url: receiverUrl(origin, receiver.name),
      eventTypes: receiver.eventTypes,
      description: receiver.description,
      externalId: receiverExternalId(receiver.name),
      secret: secrets.renew(receiver.name),
    },
    { tx: trx },
  );
}

async function find(
  hooks: AppHooks,
  projectId: string,
  receiver: ReceiverDefinition,
): Promise<SubscriptionRecord | undefined> {
  const { items } = await hooks.subscriptions.list({
    projectId,
    externalId: receiverExternalId(receiver.name),
  });
  return items[0];
}
