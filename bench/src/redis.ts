import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "./postgres.ts";

/** A redis-server of our own that writes every command to the disk before it answers, as the databases do. */
export class Redis {
  readonly port: number;
  readonly #process: ChildProcess;

  private constructor(port: number, server: ChildProcess) {
    this.port = port;
    this.#process = server;
  }

  /** Undefined where the machine has no redis-server. */
  static async start(directory: string): Promise<Redis | undefined> {
    if (spawnSync("redis-server", ["--version"]).status !== 0) return undefined;
    const home = join(directory, "redis");
    await mkdir(home);
    const port = await freePort();
    const settings = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    const server = spawn("redis-server", ["--port", String(port), "--dir", home, ...settings], {
      stdio: "ignore",
    });
    for (let tries = 0; tries < 200 && !(await answers(port)); tries++)
      await new Promise((resolve) => setTimeout(resolve, 25));
    return new Redis(port, server);
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    this.#process.kill("SIGTERM");
    await once(this.#process, "exit");
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
