import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../src/database/open.ts";
import { inTransaction } from "../../src/database/transaction-guard.ts";
import { type CalendarEvent, calendarClient } from "../../src/side-effects/calendar-client.ts";
import { PermanentFailure } from "../../src/side-effects/step.ts";
import { type CalendarServer, json, type Respond, startCalendar } from "./support/calendar-server.ts";

const host = { id: "host-1", email: "ada@example.com", name: "Ada" };
const event: CalendarEvent = {
  host,
  uid: "b1@appointments.hookwell",
  sequence: 1,
  title: "Intake: Grace",
  startAt: "2031-03-10T09:00:00.000Z",
  endAt: "2031-03-10T09:30:00.000Z",
  location: "",
  attendee: { name: "Grace", email: "grace@example.com" },
  wantsMeetingLink: true,
};
const from = Date.parse("2031-03-10T00:00:00Z");
const to = Date.parse("2031-03-11T00:00:00Z");

describe("the calendar client", () => {
  let server: CalendarServer;
  beforeEach(async () => {
    server = await startCalendar();
  });
  afterEach(() => server.close());
  const open = (limits = {}) => calendarClient({ url: server.url, ...limits });

  test("bookings 67: makes, moves and takes out an entry under one key", async () => {
    const client = open();
    expect(await client.put("b1.host-1", event)).toEqual({
      id: "entry-b1.host-1",
      meetingUrl: "https://meet.example.com/b1.host-",
    });
    await client.put("b1.host-1", { ...event, sequence: 2, startAt: "2031-03-10T10:00:00.000Z" });
    expect(server.events.get("b1.host-1")).toMatchObject({
      sequence: 2,
      start_at: "2031-03-10T10:00:00.000Z",
    });
    // What is older than the calendar has is not written.
    expect(await client.put("b1.host-1", event)).toBeUndefined();
    await client.remove("b1.host-1", 3);
    await client.remove("b1.host-1", 3);
    expect(server.events.size).toBe(0);
    expect(server.calls("PUT")[0]?.path).toBe("/cal/events/b1.host-1");
  });

  test("bookings 67: free/busy by host; our own entries are left out, for the database knows them better", async () => {
    server.busy.push(
      { host_id: "host-1", start_at: "2031-03-10T09:00:00+01:00", end_at: "2031-03-10T10:00:00+01:00" },
      {
        host_id: "host-1",
        start_at: "2031-03-10T12:00:00Z",
        end_at: "2031-03-10T12:30:00Z",
        key: "b1.host-1",
      },
      { host_id: "stranger", start_at: "2031-03-10T12:00:00Z", end_at: "2031-03-10T12:30:00Z" },
    );
    const other = { id: "host-2", email: "bob@example.com", name: "Bob" };
    const busy = await open().freeBusy([host, other], from, to);
    expect([...busy]).toEqual([
      ["host-1", [{ start: Date.parse("2031-03-10T08:00:00Z"), end: Date.parse("2031-03-10T09:00:00Z") }]],
      ["host-2", []],
    ]);
    expect(server.requests[0]?.body).toMatchObject({
      hosts: [{ id: "host-1", email: "ada@example.com" }, { id: "host-2" }],
      from: "2031-03-10T00:00:00.000Z",
      to: "2031-03-11T00:00:00.000Z",
    });
  });

  test("bookings 72: user and password of the address are sent as authorization, and are in no address", async () => {
    const address = new URL(server.url);
    address.username = "cal@endar";
    address.password = "p:ss wörd";
    await calendarClient({ url: address.toString() }).freeBusy([host], from, to);
    const [request] = server.requests;
    expect(request?.path).toBe("/cal/free-busy");
    const [scheme, value] = request?.authorization?.split(" ") ?? [];
    expect([scheme, Buffer.from(value ?? "", "base64").toString()]).toEqual(["Basic", "cal@endar:p:ss wörd"]);
  });

  const wrong: [string, RegExp, Respond][] = [
    [
      "text that is no JSON",
      /not JSON/,
      (_request, response) => {
        response.end("<html>It works!</html>");
        return true;
      },
    ],
    ["nothing", /not JSON/, (_request, response) => respond(response, 200, undefined)],
    ["another shape", /another shape/, (_request, response) => respond(response, 200, { id: 7, busy: "no" })],
    ["a list", /another shape/, (_request, response) => respond(response, 200, [])],
    [
      "a link that is none",
      /another shape/,
      (_request, response) =>
        respond(response, 200, { id: "1", meeting_url: "javascript:alert(1)", busy: [{ host_id: 1 }] }),
    ],
    [
      "times without an offset",
      /another shape/,
      (_request, response) =>
        respond(response, 200, {
          busy: [{ host_id: "host-1", start_at: "2031-03-10T09:00:00", end_at: "2031-03-10T10:00:00" }],
        }),
    ],
    ["a fault", /answered 500/, (_request, response) => respond(response, 500, { error: "no" })],
    ["somewhere else", /answered 302/, (_request, response) => redirect(response)],
    ["too much", /over 1 MiB/, (_request, response) => endless(response)],
    [
      "half an answer",
      /cannot be reached/,
      (_request, response) => {
        response.writeHead(200, { "content-length": "100" });
        response.write("{");
        setImmediate(() => response.destroy());
        return true;
      },
    ],
  ];
  test.each(wrong)(
    "bookings 64: an answer of %s is an error that says so",
    async (_name, message, answer) => {
      server.respond = answer;
      await expect(open().freeBusy([host], from, to)).rejects.toThrow(message);
      await expect(open().put("k", event)).rejects.toThrow(message);
    },
  );

  test("bookings 64: a calendar that never answers, or sends a byte at a time, ends at the time limit", async () => {
    server.respond = () => true;
    await expect(open({ freeBusyMs: 50 }).freeBusy([host], from, to)).rejects.toThrow("within 50 ms");
    server.respond = (_request, response) => {
      const timer = setInterval(() => response.write(" "), 5);
      response.on("close", () => clearInterval(timer));
      return true;
    };
    await expect(open({ eventMs: 60 }).put("k", event)).rejects.toThrow("within 60 ms");
    await expect(open({ eventMs: 60 }).remove("k", 1)).rejects.toThrow("within 60 ms");
  });

  test("bookings 64: a calendar that is gone is an error without its address", async () => {
    await server.close();
    const failed = open().put("k", event);
    await expect(failed).rejects.toThrow(/cannot be reached \(ECONNREFUSED\)/);
    await expect(failed).rejects.not.toThrow(/127\.0\.0\.1:/);
    server = await startCalendar();
  });

  test("bookings 67: an entry that the calendar calls wrong is not sent again", async () => {
    server.respond = (_request, response) => respond(response, 422, {});
    await expect(open().put("k", event)).rejects.toBeInstanceOf(PermanentFailure);
    server.respond = (_request, response) => respond(response, 401, {});
    await expect(open().put("k", event)).rejects.not.toBeInstanceOf(PermanentFailure);
  });

  test("bookings 25: no call leaves while a transaction is open", async () => {
    const database = openDatabase({ dialect: "sqlite", path: ":memory:" });
    const client = open();
    const calls: (() => Promise<unknown>)[] = [
      () => client.freeBusy([host], from, to),
      () => client.put("k", event),
      () => client.remove("k", 1),
    ];
    for (const call of calls)
      await expect(inTransaction(database.db, call)).rejects.toThrow("while a transaction is open");
    expect(server.requests).toEqual([]);
    await database.close();
  });
});

type Response = Parameters<Respond>[1];

function respond(response: Response, status: number, body: unknown): true {
  json(response, status, body);
  return true;
}

function redirect(response: Response): true {
  response.writeHead(302, { location: "http://127.0.0.1:1/elsewhere" });
  response.end();
  return true;
}

function endless(response: Response): true {
  const more = (): void => {
    while (response.write(" ".repeat(65_536)));
    response.once("drain", more);
  };
  more();
  return true;
}
