import type { Delivery } from "../../model/delivery.ts";
import type { DispatchRoom, Now, OutboxStore } from "../../store/contract.ts";
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

type Changed = Partial<{ [Name in "claim" | "dispatch" | "record"]: OutboxStore[Name] }>;

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

/** The store with its claims changed, those that a dispatch makes among them: what they ask for, and what they give. */
function claiming(
  store: OutboxStore,
  change: {
    readonly asked?: <Asked extends DispatchRoom>(asked: Asked) => Asked;
    /** While it is false, nothing is claimed. */
    readonly may?: () => boolean;
    readonly given?: (deliveries: readonly Delivery[], now: Now) => Promise<readonly Delivery[]>;
  },
): Pick<OutboxStore, "claim" | "dispatch"> {
  const { asked = (same) => same, may = () => true, given = async (same) => same } = change;
  return {
    claim: async (request) => {
      if (!may()) return { deliveries: [], failed: [], cursor: request.cursor ?? "" };
      const result = await store.claim(asked(request));
      return { ...result, deliveries: await given(result.deliveries, request.now) };
    },
    dispatch: async (items, now, room) => {
      const result = await store.dispatch(items, now, room && may() ? asked(room) : undefined);
      return { ...result, deliveries: await given(result.deliveries, now) };
    },
  };
}

export const plants: readonly Plant[] = [
  {
    name: "drop the fencing check",
    // Whoever records, the outcome counts as if it came from the last claim.
    store: () => {
      const tokens = new Map<string, string>();
      return (store) =>
        changed(store, {
          ...claiming(store, {
            given: async (deliveries) => {
              for (const { id, leaseToken } of deliveries) tokens.set(id, leaseToken!);
              return deliveries;
            },
          }),
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
      changed(
        store,
        claiming(store, {
          given: async (deliveries, now) => {
            const exchange = { startedAt: new Date(world.time.now), durationMs: 0, statusCode: 200 };
            const outcomes = deliveries.map(({ id, leaseToken }) => ({
              kind: "delivered" as const,
              id,
              leaseToken: leaseToken!,
              exchange,
            }));
            if (outcomes.length > 0) await store.record(outcomes, now);
            return deliveries;
          },
        }),
      ),
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
    store: (world) => {
      const rebuilt = (delivery: Delivery): Delivery => {
        if (delivery.attempts === 1 || delivery.type !== "order.changed") return delivery;
        const body = JSON.parse(Buffer.from(delivery.payload).toString()) as { data: { order: string } };
        const now = world.application.committed().findLast(({ data }) => data.order === body.data.order);
        return {
          ...delivery,
          payload: Buffer.from(JSON.stringify({ ...body, data: now?.data ?? body.data })),
        };
      };
      return (store) =>
        changed(store, claiming(store, { given: async (deliveries) => deliveries.map(rebuilt) }));
    },
  },
  {
    name: "ignore the lease",
    // A claimed row is due again at once for everybody.
    store: () => (store) => changed(store, claiming(store, { asked: (asked) => ({ ...asked, leaseMs: 1 }) })),
  },
  {
    name: "wait for the slowest of a batch",
    // A process claims nothing while anything that it claimed is under way.
    store: () => (store) => {
      const underWay = new Set<string>();
      return changed(store, {
        ...claiming(store, {
          may: () => underWay.size === 0,
          given: async (deliveries) => {
            for (const { id } of deliveries) underWay.add(id);
            return deliveries;
          },
        }),
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
    store: () => (store) =>
      changed(
        store,
        claiming(store, {
          given: async (deliveries) =>
            deliveries.map((delivery) => ({ ...delivery, secrets: [delivery.secret] })),
        }),
      ),
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
