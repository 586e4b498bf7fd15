import { createServer, type Socket } from "node:net";
import { steadyMs } from "./measuring.ts";
import { serve } from "./rpc.ts";

// A process of its own: an HTTP receiver as cheap as one can be, so that what is measured is the sender. It reads
// what a receiver needs (the path, `webhook-id`, the length of the body) and answers 204.
const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n", "latin1");
const separator = Buffer.from("\r\n\r\n", "latin1");

let requests = 0;
let firstAt = 0;
let lastAt = 0;
/** When each (path, id) came first, by the steady clock of the machine. */
let seen = new Map<string, number>();
let wanted: { readonly count: number; readonly resolve: () => void } | undefined;

function received(path: string, id: string): void {
  const now = steadyMs();
  requests++;
  firstAt ||= now;
  lastAt = now;
  const key = `${path} ${id}`;
  if (!seen.has(key)) seen.set(key, now);
  if (wanted && seen.size >= wanted.count) {
    wanted.resolve();
    wanted = undefined;
  }
}

function connected(socket: Socket): void {
  let head: Buffer = Buffer.alloc(0);
  let bodyLeft = 0;
  let path = "";
  let id = "";
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    let data = chunk;
    while (data.length > 0) {
      if (bodyLeft > 0) {
        const part = Math.min(bodyLeft, data.length);
        bodyLeft -= part;
        data = data.subarray(part);
      } else {
        head = head.length === 0 ? data : Buffer.concat([head, data]);
        const end = head.indexOf(separator);
        if (end < 0) return;
        const text = head.toString("latin1", 0, end);
        data = head.subarray(end + 4);
        head = Buffer.alloc(0);
        path = text.slice(5, text.indexOf(" ", 5));
        id = headerOf(text, "webhook-id");
        bodyLeft = Number(headerOf(text, "content-length"));
      }
      if (bodyLeft === 0) {
        received(path, id);
        socket.write(answer);
      }
    }
  });
}

function headerOf(head: string, name: string): string {
  const at = head.indexOf(`\r\n${name}: `);
  if (at < 0) return "";
  const from = at + name.length + 4;
  const to = head.indexOf("\r\n", from);
  return head.slice(from, to < 0 ? head.length : to);
}

const server = createServer(connected);

serve({
  listen: () =>
    new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", 4096, () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    }),
  reset: () => {
    requests = 0;
    firstAt = 0;
    lastAt = 0;
    seen = new Map();
    wanted = undefined;
  },
  /** Resolves when so many different (path, id) have come. */
  expect: (count: number) =>
    new Promise<void>((resolve) => {
      if (seen.size >= count) resolve();
      else wanted = { count, resolve };
    }),
  counts: () => ({ requests, different: seen.size, firstAt, lastAt }),
  times: () => seen,
});
