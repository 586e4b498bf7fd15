import { createHookwell, type Observer } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { events, type Host, quiet } from "../transactions/host.ts";
import { hosts, postgresHosts } from "../transactions/hosts.ts";

const network = { allow: ["127.0.0.0/8"], http: true };

/** Another instance on the same store: the one that works. */
function workerOf(host: Host, observe?: Observer) {
  return createHookwell({
    ...(observe && { observe }),
    store: host.store,
    project: "live",
    events,
    network,
    logger: quiet,
    retry: [60_000],
  });
}

async function eventIds(host: Host): Promise<string[]> {
  const { items } = await host.store.listEvents({}, { limit: 100 });
  return items.map(({ id }) => id).sort();
}

async function open(host: Host, tx: unknown, id: string): Promise<void> {
  await host.insert(tx, id);
  await host.emit(tx, "account.opened", { id }, { id: `opened-${id}` });
}

describe.each(hosts)("with $name", (kind) => {
  let host: Host;
  beforeEach(async () => {
    host = await kind.open();
  });
  afterEach(() => host.close());

  test("field-faults A1: a COMMIT that the database refuses leaves neither change nor event", async () => {
    const work = host.transaction(async (tx) => {
      await open(host, tx, "a");
      await host.emit(tx, "account.closed", { id: "a" });
      // Checked at COMMIT only: the card of an account that is not.
      await host.exec(tx, "INSERT INTO card (account_id) VALUES ('nobody')");
    });
    await expect(work).rejects.toThrow(/foreign key/i);
    await host.transaction((tx) => open(host, tx, "b"));
    expect(await host.accounts()).toEqual(["b"]);
    expect(await eventIds(host)).toEqual(["opened-b"]);
  });

  test("field-faults A2: a running dispatcher never sees an event whose transaction rolls back", async () => {
    await using receiver = await startReceiver();
    const worker = workerOf(host);
    await worker.subscriptions.create({ url: receiver.url });
    const run = worker.start();
    const sent = (count: number) =>
      receiver.waitForRequests(count).then((all) => all.map(({ headers }) => headers["webhook-id"]));
    await host.transaction((tx) => open(host, tx, "before"));
    expect(await sent(1)).toEqual(["opened-before"]);
    const declined = host.transaction(async (tx) => {
      await open(host, tx, "declined");
      // The dispatcher looks, more than once, while the event is there and not committed.
      for (let looks = 0; looks < 3; looks++) {
        run.wake();
        expect(await eventIds(host)).toEqual(["opened-before"]);
      }
      throw new Error("declined");
    });
    await expect(declined).rejects.toThrow("declined");
    await host.transaction((tx) => open(host, tx, "after"));
    expect(await sent(2)).toEqual(["opened-before", "opened-after"]);
    await run.stop();
    expect(await eventIds(host)).toEqual(["opened-after", "opened-before"]);
  });

  test("field-faults A3: of nested savepoints, only what the outermost kept is published", async () => {
    await host.transaction(async (tx) => {
      await open(host, tx, "outer");
      await host.savepoint(tx, async (middle) => {
        await open(host, middle, "middle");
        const innermost = host.savepoint(middle, async (inner) => {
          await open(host, inner, "innermost");
          throw new Error("undo the innermost");
        });
        await expect(innermost).rejects.toThrow("undo the innermost");
        // The same fact again, now for good.
        await open(host, middle, "innermost");
      });
      const undone = host.savepoint(tx, async (middle) => {
        await open(host, middle, "x");
        await host.savepoint(middle, (inner) => open(host, inner, "y"));
        throw new Error("undo both");
      });
      await expect(undone).rejects.toThrow("undo both");
    });
    expect(await host.accounts()).toEqual(["innermost", "middle", "outer"]);
    expect(await eventIds(host)).toEqual(["opened-innermost", "opened-middle", "opened-outer"]);
  });

  test("field-faults A4: endpoints that hang, reset or have no address stop no change and no operator", async () => {
    await using hanging = await startReceiver({ respond: () => "hang" });
    await using resetting = await startReceiver({ respond: () => "reset" });
    await using healthy = await startReceiver();
    let delivered = 0;
    const allDelivered = Promise.withResolvers<void>();
    const worker = workerOf(host, (name) => {
      if (name === "delivered" && ++delivered === 22) allDelivered.resolve();
    });
    const { subscriptions, deliveries } = worker;
    const stuck = await subscriptions.create({ url: hanging.url });
    const nowhere = await subscriptions.create({ url: "http://no-such-host.invalid/" });
    await subscriptions.create({ url: resetting.url });
    await subscriptions.create({ url: healthy.url });
    const run = worker.start();
    await host.transaction((tx) => open(host, tx, "00"));
    await hanging.waitForRequests(1);
    const ids = Array.from({ length: 20 }, (_, index) => `${index + 1}`.padStart(2, "0"));
    for (const id of ids) await host.transaction((tx) => open(host, tx, id));
    await healthy.waitForRequests(21);
    await subscriptions.update(stuck.id, { description: "does not answer" });
    await subscriptions.pause(stuck.id);
    await subscriptions.delete(nowhere.id);
    const [waiting] = (await deliveries.list({ subscriptionId: stuck.id, status: "pending" })).items;
    expect((await deliveries.cancel(waiting!.id)).status).toBe("cancelled");
    await worker.emit("account.closed", { id: "00" }, { tx: "own" });
    await allDelivered.promise;
    expect(await host.accounts()).toEqual(["00", ...ids]);
    await run.stop({ graceMs: 0 });
    expect(new Set(healthy.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(22);
  });
});

describe.each(postgresHosts)("with $name alone", (kind) => {
  let host: Host;
  beforeEach(async () => {
    host = await kind.open();
  });
  afterEach(() => host.close());

  test("field-faults A1: a connection that is cut between emit and COMMIT leaves neither", async () => {
    const cut = host.transaction(async (tx) => {
      await open(host, tx, "a");
      await host.exec(tx, "SELECT pg_terminate_backend(pg_backend_pid())");
    });
    await expect(cut).rejects.toThrow();
    expect(await host.accounts()).toEqual([]);
    expect(await eventIds(host)).toEqual([]);
    await host.transaction((tx) => open(host, tx, "a"));
    expect(await eventIds(host)).toEqual(["opened-a"]);
  });

  test("field-faults A5: events that commit late, and in the reverse of their order, are all delivered", async () => {
    await using receiver = await startReceiver();
    const worker = workerOf(host);
    await worker.subscriptions.create({ url: receiver.url });
    const run = worker.start();
    const sent = (count: number) =>
      receiver.waitForRequests(count).then((all) => all.map(({ headers }) => headers["webhook-id"]));
    /** Emits at once, commits when told. */
    const late = async (id: string) => {
      const emitted = Promise.withResolvers<void>();
      const commit = Promise.withResolvers<void>();
      const done = host.transaction(async (tx) => {
        await open(host, tx, id);
        emitted.resolve();
        await commit.promise;
      });
      await emitted.promise;
      return {
        commit: () => {
          commit.resolve();
          return done;
        },
      };
    };
    const first = await late("first");
    const second = await late("second");
    const third = await late("third");
    await host.transaction((tx) => open(host, tx, "quick"));
    expect(await sent(1)).toEqual(["opened-quick"]);
    await third.commit();
    expect((await sent(2)).at(-1)).toBe("opened-third");
    await host.transaction((tx) => open(host, tx, "newer"));
    expect((await sent(3)).at(-1)).toBe("opened-newer");
    await second.commit();
    expect((await sent(4)).at(-1)).toBe("opened-second");
    await first.commit();
    expect((await sent(5)).at(-1)).toBe("opened-first");
    await run.stop();
  });
});
