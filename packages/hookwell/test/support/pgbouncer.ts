import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

/** Debian puts it where only root's PATH looks. */
const places = ["pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"];

/** The program, or undefined on a machine without it. */
export function findPgBouncer(): string | undefined {
  return places.find((place) => spawnSync(place, ["--version"]).status === 0);
}

export interface PgBouncer {
  /** The same database, user and password through the pooler. */
  through(url: string): string;
  stop(): Promise<void>;
}

/** nobody, on every Linux: PgBouncer refuses to run as root. */
const nobody = 65_534;

/** A pooler in transaction mode in front of the server of `url`, with `poolSize` connections for each database. */
export async function startPgBouncer(program: string, url: string, poolSize: number): Promise<PgBouncer> {
  const { hostname, port: serverPort, username, password } = new URL(url);
  const directory = await mkdtemp(join(tmpdir(), "hookwell-pgbouncer-"));
  await chmod(directory, 0o755);
  const port = await freePort();
  await writeFile(join(directory, "users.txt"), `"${username}" "${password}"\n`, { mode: 0o644 });
  await writeFile(
    join(directory, "pgbouncer.ini"),
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(directory, "users.txt")}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 200
`,
    { mode: 0o644 },
  );
  const asRoot = process.getuid?.() === 0;
  const child = spawn(program, [join(directory, "pgbouncer.ini")], {
    stdio: ["ignore", "ignore", "pipe"],
    cwd: directory,
    ...(asRoot ? { uid: nobody, gid: nobody } : {}),
  });
  const log: string[] = [];
  child.stderr.on("data", (part) => log.push(String(part)));
  await listening(child, port, log);
  return {
    through(address) {
      const pooled = new URL(address);
      pooled.hostname = "127.0.0.1";
      pooled.port = String(port);
      return pooled.toString();
    },
    async stop() {
      const closed = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      await closed;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Resolves when something accepts connections there; rejects when the pooler ended instead. */
async function listening(child: ChildProcess, port: number, log: readonly string[]): Promise<void> {
  let ended: string | undefined;
  child.once("error", (error) => {
    ended = String(error);
  });
  child.once("close", (code) => {
    ended ??= `it ended with ${code}: ${log.join("")}`;
  });
  while (!(await answers(port))) {
    if (ended !== undefined) throw new Error(`PgBouncer does not run: ${ended}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
