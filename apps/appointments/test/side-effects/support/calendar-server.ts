import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** One request as it came in. */
export interface CalendarRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: CalendarBody;
}

/** What tests look at of the bodies. */
export interface CalendarBody {
  readonly uid: string;
  readonly sequence: number;
  readonly host: { readonly id: string; readonly email: string };
  readonly start_at: string;
  readonly end_at: string;
  readonly location: string;
  readonly meeting_link: boolean;
  readonly hosts: readonly { readonly id: string; readonly email: string }[];
  readonly from: string;
  readonly to: string;
}

/** Answers instead of the calendar. Undefined = the calendar answers. */
export type Respond = (request: CalendarRequest, response: ServerResponse) => true | undefined;

/** A calendar provider that keeps the contract of README.md, over HTTP on a port of its own. */
export interface CalendarServer {
  readonly url: string;
  readonly requests: CalendarRequest[];
  /** Entries by key. */
  readonly events: Map<string, CalendarBody>;
  /** Times that are taken by others. */
  readonly busy: { host_id: string; start_at: string; end_at: string; key?: string }[];
  /** Connections that are open, to break them. */
  readonly open: Set<Socket>;
  /** Set to be slow, wrong or silent. */
  respond: Respond | undefined;
  /** Requests of one method, in order. */
  calls(method: "PUT" | "DELETE" | "POST"): CalendarRequest[];
  /** Ends every connection and listens no more. */
  close(): Promise<void>;
}

export async function startCalendar(): Promise<CalendarServer> {
  const requests: CalendarRequest[] = [];
  const events = new Map<string, CalendarBody>();
  const calendar: Omit<CalendarServer, "url" | "close"> = {
    requests,
    events,
    busy: [],
    open: new Set(),
    respond: undefined,
    calls: (method) => requests.filter((request) => request.method === method),
  };

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("utf8");
    const request: CalendarRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      authorization: incoming.headers.authorization,
      body: text === "" ? {} : JSON.parse(text),
    };
    requests.push(request);
    if (calendar.respond?.(request, response)) return;
    const { pathname, searchParams } = new URL(request.path, "http://calendar");
    if (pathname === "/cal/free-busy") return json(response, 200, { busy: calendar.busy });
    const key = decodeURIComponent(pathname.slice("/cal/events/".length));
    const present = events.get(key);
    if (request.method === "DELETE") {
      if (present && present.sequence > Number(searchParams.get("sequence"))) return json(response, 409, {});
      return json(response, events.delete(key) ? 204 : 404, undefined);
    }
    if (present && present.sequence > request.body.sequence) return json(response, 409, {});
    events.set(key, request.body);
    const link = request.body.meeting_link
      ? { meeting_url: `https://meet.example.com/${key.slice(0, 8)}` }
      : {};
    return json(response, present ? 200 : 201, { id: `entry-${key}`, ...link });
  }

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  server.on("connection", (socket) => {
    calendar.open.add(socket);
    socket.on("close", () => calendar.open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(calendar, {
    url: `http://127.0.0.1:${port}/cal`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  });
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
