import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Receiver } from "hookwell/testing";
import { compileCache } from "../support/compile-cache.ts";
import { endpoints } from "./application.ts";
import { type CrashOrder, type CrashPoint, nameOf, reached } from "./points.ts";
import { type Sent, type Tally, tally } from "./tally.ts";
import { hooksOf, type World } from "./world.ts";

const child = fileURLToPath(new URL("child.ts", import.meta.url));
const hour = 3_600_000;
const patienceMs = 120_000;

/** How often a life passes its point before it stops there: so that it is not always the first time. */
const places: Readonly<Partial<Record<CrashPoint["step"], number>>> = {
  prune: 5,
  replay: 4,
  migrate: 12,
};

/** Runs one life until it reports its point, kills it there with SIGKILL, and waits until it is gone. */
async function live(order: CrashOrder): Promise<void> {
  const life = spawn(process.execPath, ["--conditions=@hookwell/source", "--no-warnings", child], {
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache, CRASH_ORDER: JSON.stringify(order) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  let there = false;
  life.stderr.on("data", (part) => {
    errors += part;
  });
  life.stdout.on("data", (part) => {
    there ||= String(part).includes(reached);
    if (there) life.kill("SIGKILL");
  });
  const guard = setTimeout(() => life.kill("SIGKILL"), patienceMs);
  await new Promise((resolve) => life.once("close", resolve));
  clearTimeout(guard);
  if (!there) throw new Error(`A process never came to "${nameOf(order)}":\n${errors}`);
}

/** Kills `rounds` processes at the point, then finishes what they left, and counts what became of it all. */
export async function killAt(
  point: CrashPoint,
  rounds: number,
  {
    world,
    receiver,
    onRound,
  }: { readonly world: World; readonly receiver: Receiver; readonly onRound?: () => void },
): Promise<Tally> {
  const first = receiver.requests.length;
  await prepare(world, receiver);
  for (let round = 0; round < rounds; round++) {
    const nth = 1 + (round % (places[point.step] ?? 1));
    const thing = `${point.step}-${point.moment}-${String(round).padStart(4, "0")}`;
    await live({ ...world.place, ...point, nth, thing, clockOffsetMs: (round + 1) * hour });
    onRound?.();
  }
  const offset = (rounds + 1) * hour;
  const hooks = hooksOf(world.store(offset), offset);
  for (let left = 1; left > 0; ) {
    const { remaining } = await hooks.drain({ deadlineMs: 20_000 });
    const running = await hooks.replays.list({ status: "running" });
    left = remaining.pending + remaining.newEvents + running.items.length;
  }
  await hooks.close();
  const committed = await world.ids("SELECT id FROM #thing");
  const strangers = await world.ids("SELECT id FROM @event WHERE id NOT IN (SELECT id FROM #thing)");
  const [replayed] = await world.ids("SELECT coalesce(sum(queued), 0) AS id FROM @replay");
  const sent = receiver.requests.slice(first).map(sentOf);
  return { rounds, ...tally({ committed, strangers, endpoints, sent }, Number(replayed)) };
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
  }: {
    readonly makeWorld: (round: number) => World;
    readonly receiver: Receiver;
    readonly onRound?: () => void;
  },
): Promise<Tally> {
  const first = receiver.requests.length;
  const committed: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const world = makeWorld(round);
    const nth = point.moment === "before" ? 1 + (round % places.migrate!) : 1;
    await live({ ...world.place, ...point, nth, thing: "", clockOffsetMs: 0 });
    const store = world.store(0);
    const { current, wanted } = await store.migrations.check();
    const right = point.moment === "before" ? 0 : wanted;
    if (current !== right)
      throw new Error(`A migration was killed and left version ${current}, not ${right}.`);
    await prepare(world, receiver);
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
  return { rounds, ...tally({ committed, strangers: [], endpoints, sent }, 0) };
}

async function prepare(world: World, receiver: Receiver): Promise<void> {
  const hooks = hooksOf(world.store(0), 0);
  await hooks.ready();
  await world.prepare();
  for (const name of endpoints)
    await hooks.subscriptions.create({ url: `http://127.0.0.1:${receiver.port}/${name}` });
  await hooks.close();
}

export function sentOf({ path, headers, body }: Receiver["requests"][number]): Sent {
  return { to: path.slice(1), event: String(headers["webhook-id"]), body: body.toString() };
}
