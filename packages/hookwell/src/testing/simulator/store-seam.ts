import type { OutboxStore } from "../../store/contract.ts";
import type { SimProcess } from "./process.ts";

/** What stays inside the process: it has an answer before anything else can happen. */
const immediate = new Set<PropertyKey>(["dialect", "staleOutcomes", "addSubscription", "get"]);

/**
 * The store as one process reaches it: each call is a boundary. `wakeOthers` tells the other processes of a commit;
 * `onWake` registers for that.
 */
export function storeSeam(
  store: OutboxStore,
  process: SimProcess,
  wakes: { readonly wakeOthers: () => void; readonly onWake: (act: () => void) => () => void },
): OutboxStore {
  const captureSync: OutboxStore["captureSync"] = (...given) => {
    process.operation = "transaction";
    return store.captureSync(...given);
  };
  const replays = seam(store.replays, process, "replays.", new Map());
  const own = { watch: wakes.onWake, notify: wakes.wakeOthers, captureSync, replays };
  return seam(store, process, "", new Map<PropertyKey, unknown>(Object.entries(own)));
}

/** Each method as a call of the process, named with the prefix; `methods` are those that are something else. */
function seam<Part extends object>(
  part: Part,
  process: SimProcess,
  prefix: string,
  methods: Map<PropertyKey, unknown>,
): Part {
  return new Proxy(part, {
    get(target, name) {
      const known = methods.get(name);
      if (known) return known;
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function" || typeof name === "symbol" || immediate.has(name)) return member;
      const method = (...given: unknown[]): unknown =>
        process.call(prefix + name, () => Reflect.apply(member, target, given) as Promise<unknown>);
      methods.set(name, method);
      return method;
    },
  });
}
