import type { Receiver } from "hookwell/testing";
import { endpoints } from "./application.ts";
import { live } from "./life.ts";
import { type CrashOrder, type CrashPoint, nameOf } from "./points.ts";
import { type Sent, type Tally, tally } from "./tally.ts";
import { hooksOf, type World } from "./world.ts";

/** How often a life passes its point before it stops there: so that it is not always the first time. */
const places: Readonly<Partial<Record<CrashPoint["step"], number>>> = {
  prune: 5,
  replay: 4,
  migrate: 12,
};

/** Where and with what lives are lived. */
interface Place {
  readonly world: World;
  readonly receiver: Receiver;
}

/** Makes the tables of a world and subscribes the endpoints. */
export async function prepare({ world, receiver }: Place): Promise<void> {
  const hooks = hooksOf(world.store(0), 0);
  await hooks.ready();
  await world.prepare();
  for (const name of endpoints)
    await hooks.subscriptions.create({ url: `http://127.0.0.1:${receiver.port}/${name}` });
  await hooks.close();
}

/**
 * Kills `rounds` processes at the point, one after the other, in a world that is prepared. Each takes on what those
 * before it left. Then finishes everything, and counts what became of the events of these rounds.
 */
export async function killAt(
  point: CrashPoint,
  rounds: number,
  { world, receiver, onRound }: Place & { readonly onRound?: () => void },
): Promise<Tally> {
  const first = receiver.requests.length;
  const already = await replayedIn(world);
  const beginning = `${point.step}-${point.moment}`;
  for (let round = 0; round < rounds; round++) {
    const nth = 1 + (round % (places[point.step] ?? 1));
    const thing = `${beginning}-${String(round).padStart(4, "0")}`;
    await kill({ ...world.place, ...point, nth, thing, clockOffsetMs: world.nextOffsetMs() });
    onRound?.();
  }
  await finish(world);
  const ours = `id LIKE '${beginning}-%'`;
  const committed = await world.ids(`SELECT id FROM #thing WHERE ${ours}`);
  const strangers = await world.ids(
    `SELECT id FROM @event WHERE ${ours} AND id NOT IN (SELECT id FROM #thing)`,
  );
  const sent = receiver.requests.slice(first).map(sentOf);
  const asked = (await replayedIn(world)) - already;
  const rolledBack = nameOf(point) === "capture, before" ? rounds : 0;
  return { rounds, rolledBack, ...tally({ committed, strangers, endpoints, sent }, asked) };
}

/** Dispatches and delivers until nothing is left. */
async function finish(world: World): Promise<void> {
  const offset = world.nextOffsetMs();
  const hooks = hooksOf(world.store(offset), offset);
  for (let left = 1, turns = 0; left > 0; turns++) {
    const { remaining } = await hooks.drain({ deadlineMs: 20_000 });
    const running = await hooks.replays.list({ status: "running" });
    left = remaining.pending + remaining.newEvents + running.items.length;
    if (turns === 50)
      throw new Error(`After ${turns} turns ${left} events, deliveries and replays are left.`);
  }
  await hooks.close();
}

/** How many deliveries replays have queued. */
async function replayedIn(world: World): Promise<number> {
  const [sum] = await world.ids("SELECT coalesce(sum(queued), 0) AS id FROM @replay");
  return Number(sum);
}

/**
 * Kills `rounds` processes amid the migration of a new database. Each time the tables must be those of before or
 * those of after, and migrating again must make them work.
 */
export async function killMigrations(
  point: CrashPoint,
  rounds: number,
  {
    makeWorld,
    receiver,
    onRound,
  }: { readonly makeWorld: () => World; readonly receiver: Receiver; readonly onRound?: () => void },
): Promise<Tally> {
  const first = receiver.requests.length;
  const committed: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const world = makeWorld();
    const nth = point.moment === "before" ? 1 + (round % places.migrate!) : 1;
    await kill({ ...world.place, ...point, nth, thing: "", clockOffsetMs: 0 });
    const store = world.store(0);
    const { current, wanted } = await store.migrations.check();
    const right = point.moment === "before" ? 0 : wanted;
    if (current !== right)
      throw new Error(`A migration was killed and left version ${current}, not ${right}.`);
    await prepare({ world, receiver });
    const hooks = hooksOf(store, 0);
    const id = `migrate-${point.moment}-${round}`;
    await hooks.emit("thing.made", { id }, { tx: "own", id });
    committed.push(id);
    await hooks.drain({ deadlineMs: 20_000 });
    await hooks.close();
    await world.close();
    onRound?.();
  }
  const sent = receiver.requests.slice(first).map(sentOf);
  return { rounds, rolledBack: 0, ...tally({ committed, strangers: [], endpoints, sent }, 0) };
}

async function kill(order: CrashOrder): Promise<void> {
  if ((await live("child.ts", order)) === "ended")
    throw new Error(`A process ended before it came to "${nameOf(order)}".`);
}

/** What counts of a request. */
export function sentOf({ path, headers, body }: Receiver["requests"][number]): Sent {
  return { to: path.slice(1), event: String(headers["webhook-id"]), body: body.toString() };
}
