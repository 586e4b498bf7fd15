import type { AddressInfo } from "node:net";
import { type ParsedMail, simpleParser } from "mailparser";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

/** A mail as it arrived, read by a parser that is not ours. */
export interface ReceivedMail {
  readonly to: readonly string[];
  readonly raw: string;
  readonly parsed: ParsedMail;
  /** The text/calendar part that mail programs show buttons for, or "". */
  readonly invite: string;
}

/** Why a recipient is not taken; undefined when it is. */
type Refusal = { readonly code: number; readonly text: string } | undefined;

/** A real SMTP server on a port of its own. */
export interface MailServer {
  readonly url: string;
  readonly mails: ReceivedMail[];
  /** Set to refuse recipients. */
  refuse: ((address: string) => Refusal | Promise<Refusal>) | undefined;
  /** Set to take the message and never say so. */
  isSilent: boolean;
  /** Resolves when a message has arrived that is not answered. */
  readonly held: Promise<void>;
  to(address: string): ReceivedMail[];
  close(): Promise<void>;
}

export async function startMail(options: SMTPServerOptions = {}): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  let hold: () => void = () => {};
  const state: Omit<MailServer, "url" | "close"> = {
    mails,
    refuse: undefined,
    isSilent: false,
    held: new Promise((resolve) => {
      hold = resolve;
    }),
    to: (address) => mails.filter((mail) => mail.to.includes(address)),
  };
  const server = new SMTPServer({
    authOptional: true,
    // Its own certificate is signed by nobody.
    disabledCommands: ["STARTTLS"],
    logger: false,
    disableReverseLookup: true,
    closeTimeout: 1,
    onRcptTo({ address }, _session, callback) {
      const answer = async (): Promise<Error | null> => {
        const refused = await state.refuse?.(address);
        return refused ? Object.assign(new Error(refused.text), { responseCode: refused.code }) : null;
      };
      answer().then(callback, callback);
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        if (state.isSilent) {
          hold();
          return;
        }
        const raw = Buffer.concat(chunks).toString("utf8");
        const to = session.envelope.rcptTo.map(({ address }) => address);
        simpleParser(raw).then(
          (parsed) => {
            mails.push({ to, raw, parsed, invite: invitePart(parsed) });
            callback(null);
          },
          (error: Error) => callback(error),
        );
      });
    },
    ...options,
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.server.address() as AddressInfo;
  return Object.assign(state, {
    url: `smtp://127.0.0.1:${port}`,
    async close() {
      await new Promise<void>((resolve) => server.close(resolve));
    },
  });
}

function invitePart(mail: ParsedMail): string {
  const part = mail.attachments.find((attachment) => attachment.contentType === "text/calendar");
  return part?.content.toString("utf8") ?? "";
}
