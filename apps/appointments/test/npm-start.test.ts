import { readdirSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import {
  addressIn,
  cleanups,
  commandsIn,
  count,
  directory,
  linkIn,
  place,
  receiverPage,
  running,
  shell,
  started,
} from "./support/npm-start.ts";

describe.each(["sqlite", "postgres"] as const)("npm start on %s", (dialect) => {
  test("the printed commands show three verified webhooks, Ctrl-C ends with 0, and a second start keeps everything", async () => {
    const environment = await place(dialect);
    const first = started(environment);
    const output = await first.said("Stop with Ctrl-C");
    const url = addressIn(output);
    const key = /^ {2}(hwk_\S+)$/m.exec(output)![1]!;
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
    expect(output).toMatch(/Development mode/);

    const commands = commandsIn(output);
    expect(commands).toHaveLength(3);
    // Pasted together into one shell, or each into a shell of its own.
    const scripts = dialect === "sqlite" ? [commands.join("\n")] : commands;
    let answers = "";
    for (const script of scripts) answers += await shell(script);
    expect(answers).toContain('"name":"Ada Lovelace"');
    expect(answers).toContain('"name":"Ada King"');
    expect(answers).toContain('"status":"suspended"');
    const page = await receiverPage(url, (text) => count(text, "<article") === 3);
    for (const type of ["user.created", "user.updated", "user.deactivated"])
      expect(count(page, `<h2>${type}</h2>`)).toBe(1);
    expect(count(page, "Standard Webhooks signature verified")).toBe(3);
    expect(count(page, "Body signature verified")).toBe(3);
    expect(count(page, ">First time<")).toBe(3);

    const authorization = `Bearer ${key}`;
    const catalogue = await fetch(`${url}/hookwell/v1/catalogue`, { headers: { authorization } });
    expect(
      ((await catalogue.json()) as { items: { type: string }[] }).items.map(({ type }) => type).sort(),
    ).toEqual([
      "booking.cancelled",
      "booking.created",
      "booking.rescheduled",
      "scheduling_invitation.booked",
      "scheduling_invitation.cancelled",
      "scheduling_invitation.created",
      "scheduling_invitation.expired",
      "user.created",
      "user.deactivated",
      "user.updated",
    ]);
    const link = linkIn(output)!;
    expect((await fetch(link)).status).toBe(200);

    // Twice, as one Ctrl-C under npm arrives.
    first.child.kill("SIGINT");
    first.child.kill("SIGINT");
    expect(await first.ended()).toBe(0);
    expectPrivateFiles(environment.HOOKWELL_DATA_DIR!, 2);
    expect(first.output).not.toContain("whsec_");

    const second = started(environment);
    const again = await second.said("Stop with Ctrl-C");
    expect(again).not.toContain(key);
    expect(again).not.toContain("hwk_");
    expect(linkIn(again)).toBeUndefined();
    expect(again).toContain("was shown by the start that made it");
    const newUrl = addressIn(again);
    const users = await fetch(`${newUrl}/v1/users`, { headers: { authorization } });
    expect(((await users.json()) as { items: { name: string }[] }).items.map(({ name }) => name)).toContain(
      "Ada King",
    );
    expect(count(await receiverPage(newUrl, () => true), "<article")).toBe(3);
    // Its own commands work too, on the new port, with the key in the shell; and their webhooks verify.
    expect(commandsIn(again)).toHaveLength(3);
    await shell(commandsIn(again).join("\n"), { HOOKWELL_API_KEY: key });
    const whole = await receiverPage(newUrl, (text) => count(text, "<article") === 6);
    expect(count(whole, "Standard Webhooks signature verified")).toBe(6);
    expect(count(whole, "Body signature verified")).toBe(6);
    second.child.kill("SIGTERM");
    expect(await second.ended()).toBe(0);
  });
});

/** Keys and secrets beside the database are for this user only. */
function expectPrivateFiles(directory: string, atLeast: number): void {
  const files = readdirSync(directory).filter((name) => !/\.db(-wal|-shm)?$/.test(name));
  expect(files.length).toBeGreaterThanOrEqual(atLeast);
  for (const name of files) expect([name, statSync(join(directory, name)).mode & 0o077]).toEqual([name, 0]);
}

test("HOOKWELL_WORKER=off captures and sends nothing, until a start with a worker, whose key may be another", async () => {
  const environment = await place("sqlite");
  const waiting = await running({ ...environment, HOOKWELL_WORKER: "off" });
  expect(waiting.output).toContain("HOOKWELL_WORKER=off");
  await shell(commandsIn(waiting.output).join("\n"));
  const key = /^ {2}(hwk_\S+)$/m.exec(waiting.output)![1]!;
  const events = await fetch(`${waiting.url}/hookwell/v1/events`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const states = ((await events.json()) as { items: { state: string }[] }).items.map(({ state }) => state);
  expect(states).toEqual(["new", "new", "new", "new", "new"]);
  expect(await receiverPage(waiting.url, () => true)).toContain("Nothing yet");
  waiting.child.kill("SIGINT");
  expect(await waiting.ended()).toBe(0);

  // A key that the operator chose is never printed and is valid for both APIs: so a lost key is no lock-out.
  const chosen = "operator-chose-this-key-0001";
  const { output, url } = await running({ ...environment, HOOKWELL_API_KEY: chosen });
  expect(output).not.toContain(chosen);
  for (const path of ["/v1/users/me", "/hookwell/v1/subscriptions"])
    expect((await fetch(url + path, { headers: { authorization: `Bearer ${chosen}` } })).status).toBe(200);
  const page = await receiverPage(url, (text) => count(text, "<article") === 3);
  expect(count(page, "NOT verified")).toBe(0);
});

test("a port that is in use is said, with what to do, and the exit code is 1", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => server.close());
  const { port } = server.address() as { port: number };
  const environment = await place("sqlite");
  const process = started({ ...environment, PORT: String(port) });
  expect(await process.ended()).toBe(1);
  expect(process.output).toContain(String(port));
  expect(process.output).toMatch(/PORT/);
  expect(process.output).not.toMatch(/\n\s+at /);
  // The failed start made no key that nobody saw.
  const database = new DatabaseSync(join(environment.HOOKWELL_DATA_DIR!, "hookwell.db"));
  expect(database.prepare("SELECT count(*) AS keys FROM hookwell_api_key").get()).toEqual({ keys: 0 });
  database.close();
});

test("settings that cannot work are refused with a message that says what to do", async () => {
  const faults: [Record<string, string>, RegExp][] = [
    [{ DATABASE_URL: "postgres://nobody:hunter2@127.0.0.1:1/none" }, /127\.0\.0\.1:1|ECONNREFUSED/],
    [{ HOOKWELL_ENCRYPTION_KEYS: "k1:hunter2" }, /HOOKWELL_ENCRYPTION_KEYS/],
    [{ PORT: "eighty" }, /PORT/],
  ];
  const tries = faults.map(async ([environment, message]) => {
    const process = started({ HOOKWELL_DATA_DIR: directory(), ...environment });
    expect(await process.ended()).toBe(1);
    expect(process.output).toMatch(message);
    expect(process.output).not.toContain("hunter2");
    expect(process.output).not.toMatch(/\n\s+at /);
  });
  await Promise.all(tries);
});
