import { connect } from "node:net";
import { answers, startReceiver } from "hookwell/testing";
import { expect, test } from "vitest";

test("the receiver keeps method, path, headers and the raw bytes of each request", async () => {
  await using receiver = await startReceiver({ respond: answers(201, 503) });
  const body = Buffer.from([0x7b, 0xc3, 0xa9, 0x00, 0xff, 0x7d]);
  const first = await fetch(`${receiver.url}?a=1`, { method: "POST", body, headers: { "X-Some": "Value" } });
  const second = await fetch(receiver.url, { method: "POST", body: "b" });
  const third = await fetch(receiver.url, { method: "POST", body: "c" });
  expect([first.status, second.status, third.status]).toEqual([201, 503, 503]);
  const requests = await receiver.waitForRequests(3);
  expect(requests[0]).toMatchObject({ index: 0, method: "POST", path: "/hook?a=1" });
  expect(requests[0]!.headers["x-some"]).toBe("Value");
  expect(Buffer.compare(requests[0]!.body, body)).toBe(0);
});

test("the receiver hangs until the client leaves, and says so", async () => {
  await using receiver = await startReceiver({ respond: () => "hang" });
  const abort = new AbortController();
  const call = fetch(receiver.url, { method: "POST", body: "x", signal: abort.signal });
  await receiver.waitForRequests(1);
  abort.abort();
  await expect(call).rejects.toThrow();
  await receiver.waitFor((r) => r.abandoned === 1);
});

test("the receiver cuts the connection before or after the headers, as told", async () => {
  await using receiver = await startReceiver({
    respond: answers("reset", { status: 200, body: "half", ending: "reset" }),
  });
  await expect(fetch(receiver.url, { method: "POST", body: "x" })).rejects.toThrow();
  const answer = await fetch(receiver.url, { method: "POST", body: "y" });
  expect(answer.status).toBe(200);
  await expect(answer.text()).rejects.toThrow();
  expect(receiver.abandoned).toBe(0);
});

test("the receiver writes a body piece by piece, and sends a reason phrase and repeated headers", async () => {
  let goOn = (): void => {};
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  await using receiver = await startReceiver({
    respond: () => ({
      status: 202,
      reason: "Taken Gladly",
      headers: { "set-cookie": ["a=1", "b=2"] },
      body: (async function* () {
        yield "one ";
        await gate;
        yield "two";
      })(),
    }),
  });
  const answer = await fetch(receiver.url, { method: "POST", body: "x" });
  expect(answer.statusText).toBe("Taken Gladly");
  expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  goOn();
  expect(await answer.text()).toBe("one two");
});

test("a wait that never comes true is rejected at close, and an error in respond comes out there", async () => {
  const receiver = await startReceiver({
    respond: () => {
      throw new Error("the script is wrong");
    },
  });
  const wait = receiver.waitForRequests(5);
  await expect(fetch(receiver.url, { method: "POST", body: "x" })).rejects.toThrow();
  await expect(Promise.all([wait, receiver.close()])).rejects.toThrow(/closed after 1|script is wrong/);
  await expect(receiver.waitForRequests(9)).rejects.toThrow("closed");
});

test("a request that breaks off inside its body is not kept", async () => {
  await using receiver = await startReceiver();
  const socket = connect(receiver.port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write("POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc", () => socket.destroy());
  await receiver.waitFor((r) => r.abandoned === 1);
  expect(receiver.requests).toEqual([]);
});
