import type { Operation } from "./operations.ts";
import type { Json, World } from "./world.ts";

/*
 * A valid call of every route. A new route needs a line here only when its OpenAPI example alone does not do: because
 * something must be there first (`special`), or because `{id}` in its path names a new kind of thing (`furnish` and
 * `things`). The tests in routes.test.ts and access.test.ts then call it by themselves.
 */

/** One of each thing, all in one project. */
export interface Furniture {
  readonly project: string;
  readonly subscription: string;
  readonly event: string;
  readonly delivery: string;
  readonly key: string;
  readonly replay: string;
  readonly hold: string;
}

/** What `{id}` names, by the beginning of the path. */
const things: Readonly<Record<string, keyof Furniture>> = {
  "/v1/subscriptions/": "subscription",
  "/v1/events/": "event",
  "/v1/deliveries/": "delivery",
  "/v1/keys/": "key",
  "/v1/replays/": "replay",
  "/v1/holds/": "hold",
};

/** Ids that no project has. */
export const nothing: Furniture = {
  project: "red",
  subscription: "sub_none",
  event: "evt_none",
  delivery: "dlv_none",
  key: "key_none",
  replay: "rpl_none",
  hold: "hld_none",
};

/** Makes one of everything; the delivery is pending. Its texts are known by the name of the project. */
export async function furnish(world: World, project: string): Promise<Furniture> {
  const make = (path: string, body: Json, status = 201) => world.ok(status, "POST", path, { body });
  const subscription = await make("/v1/subscriptions", {
    project_id: project,
    url: "http://127.0.0.1:9/private-path",
    external_id: `${project}-external`,
  });
  const event = `${project}-event`;
  await make(
    "/v1/events",
    { id: event, project_id: project, type: "order.paid", data: { note: `${project}-private` } },
    202,
  );
  await world.hooks.drain({ deadlineMs: 30_000, max: 0 });
  const [delivery] = (await world.ok(200, "GET", `/v1/deliveries?project_id=${project}`)).items;
  const key = await make("/v1/keys", { name: `${project}-key`, scopes: ["read"], project_id: project });
  const replay = await make("/v1/replays", newReplay(subscription.id), 202);
  const hold = await make("/v1/holds", { project_id: project });
  return {
    project,
    subscription: subscription.id,
    event,
    delivery: delivery.id,
    key: key.id,
    replay: replay.id,
    hold: hold.id,
  };
}

function newReplay(subscription_id: string): Json {
  return { subscription_id, since: "2026-03-01T00:00:00Z", status: ["failed"] };
}

interface Special {
  /** Brings about what the call needs. */
  readonly before?: (world: World, things: Furniture) => Promise<unknown>;
  /** Sent instead of the OpenAPI example. */
  readonly body?: (things: Furniture) => Json;
  /** What a key of another project gets, where it is not what the form of the route lets expect. */
  readonly foreign?: { readonly status: number; readonly pointer?: string };
}

const move =
  (verb: string) =>
  (world: World, { subscription }: Furniture) =>
    world.ok(200, "POST", `/v1/subscriptions/${subscription}/${verb}`);

const special: Readonly<Record<string, Special>> = {
  resumeSubscription: { before: move("pause") },
  enableSubscription: { before: move("disable") },
  releaseEvent: {
    before: async (world, { project, event }) => {
      const id = `${event}-parked`;
      const body = { id, project_id: project, type: "order.paid", data: {} };
      await world.ok(202, "POST", "/v1/events", { body });
      await world.hooks.store.failDispatch({ projectId: project, id }, "cannot be rendered", null, null);
    },
  },
  createReplay: { body: ({ subscription }) => newReplay(subscription), foreign: { status: 404 } },
  cancelDeliveries: { body: ({ subscription }) => ({ subscription_id: subscription }) },
  getStats: { foreign: { status: 404 } },
  getMetrics: { foreign: { status: 403 } },
};

export interface Call {
  readonly path: string;
  readonly body?: Json;
  readonly headers: Readonly<Record<string, string>>;
}

/** A call that the route carries out, when {@link prepare} was called before. */
export function exampleOf(operation: Operation, own: Furniture): Call {
  const { id, path, query, body } = operation;
  const thing = Object.entries(things).find(([beginning]) => path.startsWith(beginning))?.[1];
  if (path.includes("{id}") && !thing)
    throw new Error(`${id}: what does {id} in ${path} name? Add it to things and furnish (examples.ts).`);
  const name = id === "releaseEvent" ? `${own.event}-parked` : thing && own[thing];
  const scoped = query.some((parameter) => parameter.name === "project_id");
  const sent = special[id]?.body?.(own) ?? body?.example;
  if (body && sent === undefined)
    throw new Error(`${id} has no example: give its route one (RouteSpec.example), or add it to special.`);
  return {
    path: path.replace("{id}", name ?? "") + (scoped ? `?project_id=${own.project}` : ""),
    headers: {},
    ...(body && { body: sent.project_id === undefined ? sent : { ...sent, project_id: own.project } }),
  };
}

/** Brings about what the example needs. */
export async function prepare(operation: Operation, world: World, own: Furniture): Promise<void> {
  await special[operation.id]?.before?.(world, own);
}

/** What a key of another project gets for the example of this one's. */
export function foreignAnswer({ id, path }: Operation, call: Call): NonNullable<Special["foreign"]> {
  const given = special[id]?.foreign;
  if (given) return given;
  if (path.includes("{id}")) return { status: 404 };
  if (call.body?.project_id !== undefined) return { status: 400, pointer: "/project_id" };
  // A list without anything of it.
  return { status: 200 };
}
