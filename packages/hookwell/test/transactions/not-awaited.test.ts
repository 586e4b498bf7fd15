import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Host } from "./host.ts";
import { hosts } from "./hosts.ts";

describe.each(hosts)("an emit of $name that is not awaited", (kind) => {
  let host: Host;
  beforeEach(async () => {
    host = await kind.open();
  });
  afterEach(() => host.close());
  const eventIds = async () =>
    (await host.store.listEvents({}, { limit: 10 })).items.map(({ id }) => id).sort();

  test("field-faults A2: commits and rolls back with its transaction all the same", async () => {
    // The first emit looks at the connection besides.
    for (const id of ["first", "second"]) {
      let emitted: Promise<unknown> | undefined;
      await host.transaction(async (tx) => {
        await host.insert(tx, id);
        emitted = host.emit(tx, "account.opened", { id }, { id });
      });
      await emitted;
      const declined = host.transaction(async (tx) => {
        emitted = host.emit(tx, "account.opened", { id: "none" }, { id: `declined-${id}` });
        throw new Error("declined");
      });
      await expect(declined).rejects.toThrow("declined");
      await emitted?.catch(() => {});
    }
    expect(await host.accounts()).toEqual(["first", "second"]);
    expect(await eventIds()).toEqual(["first", "second"]);
  });
});
