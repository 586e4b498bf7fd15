import { expect, test } from "vitest";
import { type Resolver, resolveOnce, slowNamesApart, systemResolver } from "../../src/send/resolver.ts";

const address = { address: "127.0.0.1", family: 4 } as const;

test("one name is asked for once at a time, and again afterwards", async () => {
  let asked = 0;
  const gate = Promise.withResolvers<void>();
  const resolver = resolveOnce(async () => {
    asked++;
    await gate.promise;
    return [address];
  });
  const both = Promise.all([resolver("a.test"), resolver("a.test")]);
  gate.resolve();
  expect(await both).toEqual([[address], [address]]);
  await resolver("a.test");
  expect(asked).toBe(2);
  expect(await resolver("::1")).toEqual([{ address: "::1", family: 6 }]);
  expect(asked).toBe(2);
});

test("names that were slow wait for each other and for nobody else", async () => {
  const running = new Map<string, PromiseWithResolvers<void>>();
  const asked: Resolver = async (hostname) => {
    const gate = Promise.withResolvers<void>();
    running.set(hostname, gate);
    await gate.promise;
    running.delete(hostname);
    return [address];
  };
  // Every look-up counts as slow with 0; with Infinity none would.
  const resolver = slowNamesApart(asked, 0);
  const finish = async (name: string): Promise<void> => {
    running.get(name)!.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const names = ["a.test", "b.test", "c.test"];
  const first = names.map((name) => resolver(name));
  expect([...running.keys()]).toEqual(names);
  for (const name of names) await finish(name);
  await Promise.all(first);

  const second = names.map((name) => resolver(name));
  const fresh = resolver("fresh.test");
  await new Promise((resolve) => setImmediate(resolve));
  expect([...running.keys()].sort()).toEqual(["a.test", "fresh.test"]);
  for (const name of ["a.test", "b.test", "c.test", "fresh.test"]) await finish(name);
  expect(await Promise.all([...second, fresh])).toHaveLength(4);
});

test("the resolver of the system knows this machine", async () => {
  const addresses = await systemResolver()("localhost");
  expect(addresses.map((each) => each.address)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^(127\.0\.0\.1|::1)$/)]),
  );
});
