import { AsyncLocalStorage } from "node:async_hooks";
import type { AppDatabase, AppTransaction } from "./schema.ts";

/** One transaction of this application; `open` until it is committed or rolled back. */
interface Span {
  open: boolean;
}

const current = new AsyncLocalStorage<Span>();

/** The work was done, but the database did not commit it: nothing of it is there. */
export class CommitFailedError extends Error {
  constructor(cause: unknown) {
    super("The database did not commit the transaction.", { cause });
    this.name = "CommitFailedError";
  }
}

/**
 * The one way this application opens a transaction. While it is open, {@link refuseInTransaction} throws in
 * everything that `work` calls, however deep: a provider that is slow or gone must never hold a transaction open.
 * @throws CommitFailedError when only the commit failed; else whatever `work` throws. Nothing was changed then.
 */
export async function inTransaction<T>(
  db: AppDatabase,
  work: (trx: AppTransaction) => Promise<T>,
): Promise<T> {
  // A second one inside the first would wait for ever on SQLite, and survive the first one's rollback elsewhere.
  refuseInTransaction("Another transaction");
  const span: Span = { open: true };
  let worked = false;
  try {
    return await current.run(span, () =>
      db.transaction().execute(async (trx) => {
        const result = await work(trx);
        worked = true;
        return result;
      }),
    );
  } catch (error) {
    throw worked ? new CommitFailedError(error) : error;
  } finally {
    // What the work left running in the background goes on after the transaction, and may then call providers.
    span.open = false;
  }
}

/** True in everything that the work of an open transaction calls. */
export function isInTransaction(): boolean {
  return current.getStore()?.open === true;
}

/** Called by every provider (calendar, mail, HTTP) before it does anything. @throws Error inside a transaction */
export function refuseInTransaction(what: string): void {
  if (isInTransaction())
    throw new Error(
      `${what} was about to run while a transaction is open. Do it before, or after the commit.`,
    );
}
