import { NotFoundError } from "../model/errors.ts";
import type { SubscriptionRecord } from "../model/subscription.ts";
import type { OutboxStore, Visibility } from "../store/contract.ts";
import { checkedPage } from "./checks.ts";
import { explain } from "./explain.ts";
import type { Scopes } from "./scope.ts";
import type { Events } from "./surface.ts";

export function manageEvents<Tx>(parts: {
  readonly store: OutboxStore;
  readonly scopes: Scopes;
  readonly wake: () => void;
}): Events<Tx> {
  const { store, scopes, wake } = parts;
  const get: Events<Tx>["get"] = async (id, visibility = {}) => {
    const event = await store.getEvent(id, visibility);
    if (!event) throw new NotFoundError("event", id);
    return event;
  };
  const subscriptionOf = async (id: string, visibility: Visibility): Promise<SubscriptionRecord> => {
    const subscription = await store.getSubscription(id, visibility);
    if (!subscription) throw new NotFoundError("subscription", id);
    return subscription;
  };
  return {
    get,
    list: async (filter = {}, page) => store.listEvents(filter, checkedPage(page)),
    async explain(id, { visibility = {}, subscriptionId, ...page } = {}) {
      const event = await get(id, visibility);
      const whose = { ...visibility, projectId: event.projectId };
      const { items, next } =
        subscriptionId === undefined
          ? await store.listSubscriptions(whose, checkedPage(page))
          : { items: [await subscriptionOf(subscriptionId, whose)] };
      const ids = items.map((subscription) => subscription.id);
      const found = await store.deliveriesOfEvent(event, ids);
      const deliveries = new Map(found.map((delivery) => [delivery.subscriptionId, delivery]));
      return {
        items: items.map((subscription) => explain(event, subscription, deliveries.get(subscription.id))),
        ...(next && { next }),
      };
    },
    async release(id, { tx = "own", visibility = {} } = {}) {
      const scope = scopes.forAsync(tx);
      const { projectId } = await get(id, visibility);
      await store.releaseEvent(scope, { projectId, id });
      wake();
    },
  };
}
