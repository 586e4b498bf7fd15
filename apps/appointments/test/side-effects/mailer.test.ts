import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../src/database/open.ts";
import { inTransaction } from "../../src/database/transaction-guard.ts";
import { icalendar } from "../../src/side-effects/icalendar.ts";
import { type Mail, smtpMailer } from "../../src/side-effects/mailer.ts";
import { PermanentFailure } from "../../src/side-effects/step.ts";
import { type MailServer, startMail } from "./support/mail-server.ts";

const from = "Appointments <hello@book.example.com>";
const mail: Mail = {
  id: "0198-step",
  to: { name: "Grace Hopper", email: "grace@example.com" },
  replyTo: { name: "Ada Lovelace", email: "ada@example.com" },
  subject: "Confirmed: Intake",
  text: "Hello Grace,\n",
};

describe("the mailer", () => {
  let server: MailServer;
  beforeEach(async () => {
    server = await startMail();
  });
  afterEach(() => server.close());

  test("bookings 67: a mail arrives with its invite as a part that mail programs act on", async () => {
    const content = icalendar({
      method: "REQUEST",
      uid: "b1@appointments.hookwell",
      sequence: 1,
      stamp: new Date("2031-03-01T00:00:00Z"),
      startAt: "2031-03-10T09:00:00.000Z",
      endAt: "2031-03-10T09:30:00.000Z",
      title: "Beratung für Größeres, Teil 2",
      description: "",
      location: "",
      organizer: { name: "Ada", email: "ada@example.com" },
      attendees: [mail.to],
    });
    await smtpMailer({ url: server.url, from }).send({ ...mail, invite: { method: "REQUEST", content } });
    const [received] = server.mails;
    expect(received?.to).toEqual(["grace@example.com"]);
    expect(received?.parsed.from?.text).toContain("hello@book.example.com");
    expect(received?.parsed.replyTo?.text).toContain("ada@example.com");
    expect(received?.parsed.messageId).toBe("<0198-step@book.example.com>");
    expect(received?.parsed.headers.get("auto-submitted")).toBe("auto-generated");
    expect(received?.parsed.text).toContain("Hello Grace,");
    expect(received?.raw).toMatch(/content-type: text\/calendar;[^\r]*(\r\n [^\r]*)*method=REQUEST/i);
    expect(received?.invite).toBe(content);
  });

  test("bookings 67: names and subjects of any script, and with line ends in them, stay where they belong", async () => {
    const odd = 'Ö "Ada" <x@evil.example>, 漢字\r\nBcc: mallory@example.com';
    await smtpMailer({ url: server.url, from }).send({
      ...mail,
      to: { name: odd, email: "grace@example.com" },
      subject: odd,
    });
    const [received] = server.mails;
    expect(received?.to).toEqual(["grace@example.com"]);
    expect(received?.parsed.bcc).toBeUndefined();
    expect(received?.parsed.subject).toContain('Ö "Ada" <x@evil.example>, 漢字');
  });

  test("bookings 65: a recipient that is refused for good fails for good, one that is busy does not", async () => {
    const mailer = smtpMailer({ url: server.url, from });
    server.refuse = () => ({ code: 550, text: "no such user" });
    const refused = mailer.send(mail);
    await expect(refused).rejects.toBeInstanceOf(PermanentFailure);
    await expect(refused).rejects.toThrow("no such user");
    server.refuse = () => ({ code: 451, text: "try again later" });
    const later = mailer.send(mail);
    await expect(later).rejects.not.toBeInstanceOf(PermanentFailure);
    await expect(later).rejects.toThrow("try again later");
    expect(server.mails).toEqual([]);
  });

  test("bookings 72: what the server says is stored without links, tokens and the password", async () => {
    await server.close();
    server = await startMail({
      allowInsecureAuth: true,
      onAuth: ({ username }, _session, callback) => callback(null, { user: username }),
    });
    const token = "c0ffee".repeat(11).slice(0, 64);
    server.refuse = () => ({
      code: 554,
      text: `spam: https://book.example.com/manage/${token} /s/${token} ${token} from hunter22`,
    });
    const url = server.url.replace("//", "//hookwell:hunter22@");
    const failed: unknown = await smtpMailer({ url, from })
      .send(mail)
      .catch((error: unknown) => error);
    const { message } = failed as Error;
    expect(message).toContain("spam");
    for (const secret of [token, "/manage/", "/s/", "hunter22", "book.example.com"])
      expect(message).not.toContain(secret);
  });

  test("bookings 65: a server that takes a mail and says nothing more ends at the time limit", async () => {
    server.isSilent = true;
    let isHeld = false;
    void server.held.then(() => {
      isHeld = true;
    });
    // On a busy machine the time can be over before the mail has arrived.
    for (let limitMs = 150; !isHeld; limitMs *= 2) {
      const error = await smtpMailer({ url: server.url, from, limitMs })
        .send(mail)
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      if (isHeld) expect((error as Error).message).toContain(`within ${limitMs} ms`);
    }
  });

  test("bookings 65: so do one without a greeting and one that greets a byte at a time", async () => {
    const mute = await listen(() => undefined);
    await expect(smtpMailer({ url: mute.url, from, limitMs: 100 }).send(mail)).rejects.toThrow();
    await mute.close();
    const slow = await listen((write) => {
      const timer = setInterval(() => write("2"), 5);
      return () => clearInterval(timer);
    });
    await expect(smtpMailer({ url: slow.url, from, limitMs: 100 }).send(mail)).rejects.toThrow(
      /100 ms|not taken/,
    );
    await slow.close();
  });

  test("bookings 65: a server that is gone is an error", async () => {
    const mailer = smtpMailer({ url: server.url, from });
    await server.close();
    await expect(mailer.send(mail)).rejects.toThrow("the mail was not taken");
    server = await startMail();
  });

  test("bookings 25: no mail leaves while a transaction is open", async () => {
    const database = openDatabase({ dialect: "sqlite", path: ":memory:" });
    const mailer = smtpMailer({ url: server.url, from });
    await expect(inTransaction(database.db, () => mailer.send(mail))).rejects.toThrow(
      "while a transaction is open",
    );
    expect(server.mails).toEqual([]);
    await database.close();
  });
});

/** A TCP server that speaks as told; the function may answer how it stops. */
async function listen(speak: (write: (text: string) => void) => (() => void) | undefined) {
  const server: Server = createServer((socket) => {
    socket.on("error", () => {});
    const stop = speak((text) => socket.write(text));
    socket.on("close", () => stop?.());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `smtp://127.0.0.1:${port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
