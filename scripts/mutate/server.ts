import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * One PostgreSQL for all runs, in a group of its own: Ctrl-C at a terminal goes to every process of a group, and a
 * server that has ended before it is told to cannot be waited for.
 */
export async function startServer(): Promise<Server> {
  const child = fork(fileURLToPath(new URL("./server-process.ts", import.meta.url)), { detached: true });
  const ended = once(child, "exit");
  const url = await Promise.race([once(child, "message"), ended.then(() => [])]);
  if (typeof url[0] !== "string") throw new Error("The PostgreSQL of the tests did not start.");
  return {
    url: url[0],
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
