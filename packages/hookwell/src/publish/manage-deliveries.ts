import { NotFoundError } from "../model/errors.ts";
import type { Now, OutboxStore } from "../store/contract.ts";
import { checkedPage } from "./checks.ts";
import type { Scopes } from "./scope.ts";
import type { Deliveries } from "./surface.ts";

export function manageDeliveries<Tx>(parts: {
  readonly store: OutboxStore;
  readonly scopes: Scopes;
  readonly now: () => Now;
  readonly wake: () => void;
}): Deliveries<Tx> {
  const { store, scopes, now, wake } = parts;
  return {
    async get(id, visibility = {}) {
      const delivery = await store.getDelivery(id, visibility);
      if (!delivery) throw new NotFoundError("delivery", id);
      return delivery;
    },
    list: async (filter = {}, page) => store.listDeliveries(filter, checkedPage(page)),
    async retry(id, { tx = "own", visibility = {} } = {}) {
      const delivery = await store.retryDelivery(scopes.forAsync(tx), id, visibility, now());
      wake();
      return delivery;
    },
    cancel: async (id, { tx = "own", visibility = {} } = {}) =>
      store.cancelDelivery(scopes.forAsync(tx), id, visibility, now()),
  };
}
