import { createHookwell, defineEvents } from "hookwell";
import { sqliteStore } from "hookwell/sqlite";
import { z } from "zod";

/**
 * An instance on the same database as the command line, as a server beside it would be: it may send to this machine,
 * and gives a delivery up after one attempt. With a `type` it is an application that knows that type alone.
 */
export function beside(path: string, options: { readonly type?: string; readonly now?: () => Date } = {}) {
  const { type, now } = options;
  const events = type && defineEvents({ [type]: { schema: z.unknown() } });
  const hooks = createHookwell({
    store: sqliteStore({ path, ...(now && { now }) }),
    project: "live",
    network: { allow: ["127.0.0.0/8"], http: true },
    retry: [],
    logger: { info() {}, warn() {}, error() {} },
    ...(events && { events }),
  });
  return Object.assign(hooks, { [Symbol.asyncDispose]: () => hooks.close() });
}

/** Dispatches and sends what is due. */
export async function work(path: string): Promise<void> {
  await using hooks = beside(path);
  await hooks.drain({ deadlineMs: 10_000 });
}
