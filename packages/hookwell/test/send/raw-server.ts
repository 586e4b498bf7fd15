import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Worker } from "node:worker_threads";

/** A TCP server whose connections the test answers byte by byte. */
export interface RawServer extends AsyncDisposable {
  readonly port: number;
  /** Connections accepted so far. */
  readonly connections: number;
  /** Requests complete with their bodies, in order: the text, and the number of its connection from 0. */
  readonly requests: readonly { readonly text: string; readonly connection: number }[];
}

export const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Calls `onRequest` with each complete request; on TLS ports and the like it may never be called. */
export async function startRawServer(
  onRequest: (socket: Socket, request: { text: string; connection: number; index: number }) => void,
  options: { readonly host?: string; readonly port?: number } = {},
): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const requests: { text: string; connection: number }[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    const connection = connections++;
    sockets.add(socket);
    let received = "";
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
      const head = received.indexOf("\r\n\r\n");
      const length = /content-length: (\d+)/i.exec(received)?.[1];
      if (head < 0 || received.length < head + 4 + Number(length ?? 0)) return;
      const request = { text: received, connection };
      received = "";
      requests.push(request);
      onRequest(socket, { ...request, index: requests.length - 1 });
    });
  });
  server.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** An address that drops SYN packets: a listener that does not accept, behind a queue that is full. */
export interface BlackHole extends AsyncDisposable {
  readonly port: number;
  /** From now on it accepts, and answers every request with 200. */
  open(): void;
}

export async function startBlackHole(
  options: { readonly host?: string; readonly port?: number } = {},
): Promise<BlackHole> {
  const { host = "127.0.0.1", port = 0 } = options;
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
     const answer = (request, response) => request.resume().on("end", () => response.end());
     const server = require("node:http").createServer(answer);
     server.listen({ ...workerData.listen, backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       // While the thread sleeps nothing is accepted; the kernel queues two connections and drops the rest.
       Atomics.wait(workerData.gate, 0, 0);
     });`,
    { eval: true, workerData: { listen: { host, port }, gate } },
  );
  const [listening] = (await once(worker, "message")) as [number];
  const fillers: Socket[] = [];
  // Two fit; the ones after them are what keeps the queue full for as long as they try.
  for (let index = 0; index < 4; index++) {
    const socket = connect(listening, host);
    socket.on("error", () => {});
    fillers.push(socket);
    if (index < 2) await once(socket, "connect");
  }
  const open = (): void => {
    for (const socket of fillers) socket.destroy();
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
  };
  return {
    port: listening,
    open,
    async [Symbol.asyncDispose]() {
      open();
      await worker.terminate();
    },
  };
}
