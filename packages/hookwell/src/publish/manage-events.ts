import { NotFoundError } from "../model/errors.ts";
import type { OutboxStore } from "../store/contract.ts";
import { checkedPage } from "./checks.ts";
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
  return {
    get,
    list: async (filter = {}, page) => store.listEvents(filter, checkedPage(page)),
    async release(id, { tx = "own", visibility = {} } = {}) {
      const scope = scopes.forAsync(tx);
      const { projectId } = await get(id, visibility);
      await store.releaseEvent(scope, { projectId, id });
      wake();
    },
  };
}
