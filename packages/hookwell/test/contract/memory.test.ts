import { storeContract } from "hookwell/testing";
import { describe, test } from "vitest";
import { MemoryOutbox, memoryTx } from "../../src/store/memory/index.ts";

storeContract(
  "memory",
  {
    async make({ now, idFunc }) {
      const store = new MemoryOutbox({ now, idFunc });
      return {
        store,
        transaction: (fn) =>
          store.transaction((tx) => fn({ kind: "async", adapter: memoryTx() as never, tx })),
        close: () => store.close(),
      };
    },
  },
  { describe, test },
);
