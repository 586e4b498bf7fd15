import type { Delivery } from "../../model/delivery.ts";
import type { OutboxStore } from "../../store/contract.ts";
import type { World } from "./world.ts";

/** A fault planted in the product, for the simulator to find. */
export interface Plant {
  readonly name: string;
  /** Changes what the store does: called once for a world, and then with the store of each process. */
  readonly store?: (world: World) => (store: OutboxStore) => OutboxStore;
  /** Changes the SQL of the SQLite store, and takes something from its schema. Only SQLite shows it. */
  readonly sql?: { readonly rewrite: (sql: string) => string; readonly ruin: string };
  readonly emitsOutside?: true;
}

type Changed = Partial<{ [Name in "claim" | "record"]: OutboxStore[Name] }>;

/** The store with some of its methods changed. */
function changed(store: OutboxStore, methods: Changed): OutboxStore {
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(methods, name)) return methods[name as keyof Changed];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

/** The store whose claims give what `change` makes of a claimed delivery. */
function claimed(store: OutboxStore, change: (delivery: Delivery) => Delivery): OutboxStore {
  return changed(store, {
    claim: async (request) => {
      const result = await store.claim(request);
      return { ...result, deliveries: result.deliveries.map(change) };
    },
  });
}

export const plants: readonly Plant[] = [
  {
    name: "drop the fencing check",
    // Whoever records, the outcome counts as if it came from the last claim.
    store: () => {
      const tokens = new Map<string, string>();
      return (store) =>
        changed(store, {
          claim: async (request) => {
            const result = await store.claim(request);
            for (const { id, leaseToken } of result.deliveries) tokens.set(id, leaseToken!);
            return result;
          },
          record: (outcomes, ...rest) =>
            store.record(
              outcomes.map((outcome) => ({
                ...outcome,
                leaseToken: tokens.get(outcome.id) ?? outcome.leaseToken,
              })),
              ...rest,
            ),
        });
    },
  },
  {
    name: "record before send",
    store: (world) => (store) =>
      changed(store, {
        claim: async (request) => {
          const result = await store.claim(request);
          const exchange = { startedAt: new Date(world.time.now), durationMs: 0, statusCode: 200 };
          const outcomes = result.deliveries.map(({ id, leaseToken }) => ({
            kind: "delivered" as const,
            id,
            leaseToken: leaseToken!,
            exchange,
          }));
          if (outcomes.length > 0) await store.record(outcomes, request.now);
          return result;
        },
      }),
  },
  { name: "emit outside the transaction", emitsOutside: true },
  {
    name: "forget the unique key",
    // Ids are no longer derived, and nothing says that a pair is there already.
    sql: {
      ruin: `
DROP INDEX hookwell_delivery_pair;
CREATE INDEX hookwell_delivery_pair ON hookwell_delivery (event_id, subscription_id);`,
      rewrite: (sql) =>
        sql.includes("INSERT INTO hookwell_delivery")
          ? sql.replace("j.value ->> 'id'", "j.value ->> 'id' || (SELECT count(*) FROM hookwell_delivery)")
          : sql,
    },
  },
  {
    name: "compute the next attempt from the claim time",
    store: () => (store) =>
      changed(store, {
        record: (outcomes, ...rest) =>
          store.record(
            outcomes.map((outcome) =>
              outcome.kind === "retry"
                ? { ...outcome, delayMs: Math.max(outcome.delayMs - outcome.exchange.durationMs, 0) }
                : outcome,
            ),
            ...rest,
          ),
      }),
  },
  {
    name: "rebuild the body on retry",
    // From the order as it is by then.
    store: (world) => (store) =>
      claimed(store, (delivery) => {
        if (delivery.attempts === 1 || delivery.type !== "order.changed") return delivery;
        const body = JSON.parse(Buffer.from(delivery.payload).toString()) as { data: { order: string } };
        const now = world.application.committed().findLast(({ data }) => data.order === body.data.order);
        return {
          ...delivery,
          payload: Buffer.from(JSON.stringify({ ...body, data: now?.data ?? body.data })),
        };
      }),
  },
  {
    name: "ignore the lease",
    // A claimed row is due again at once for everybody.
    store: () => (store) => changed(store, { claim: (request) => store.claim({ ...request, leaseMs: 1 }) }),
  },
  {
    name: "wait for the slowest of a batch",
    // A process claims nothing while anything that it claimed is under way.
    store: () => (store) => {
      const underWay = new Set<string>();
      return changed(store, {
        claim: async (request) => {
          if (underWay.size > 0) return { deliveries: [], failed: [], cursor: request.cursor ?? "" };
          const result = await store.claim(request);
          for (const { id } of result.deliveries) underWay.add(id);
          return result;
        },
        record: (outcomes, ...rest) => {
          for (const { id } of outcomes) underWay.delete(id);
          return store.record(outcomes, ...rest);
        },
      });
    },
  },
  {
    name: "give up without a word",
    // What used up its attempts looks as if it had been delivered.
    store: () => (store) =>
      changed(store, {
        record: (outcomes, ...rest) =>
          store.record(
            outcomes.map((outcome) =>
              outcome.kind === "failed" && outcome.exchange
                ? {
                    kind: "delivered",
                    id: outcome.id,
                    leaseToken: outcome.leaseToken,
                    exchange: outcome.exchange,
                  }
                : outcome,
            ),
            ...rest,
          ),
      }),
  },
  {
    name: "sign with the bound secret alone",
    // A rotation changes nothing for what is pending.
    store: () => (store) => claimed(store, (delivery) => ({ ...delivery, secrets: [delivery.secret] })),
  },
];

/** @throws Error naming those there are */
export function plantNamed(name: string): Plant {
  const found = plants.find((plant) => plant.name === name);
  if (!found)
    throw new Error(
      `There is no planted fault "${name}". There are: ${plants.map((each) => each.name).join(", ")}.`,
    );
  return found;
}
