import { createTransport } from "nodemailer";
import { refuseInTransaction } from "../database/transaction-guard.ts";
import { safeReason } from "./safe-text.ts";
import { PermanentFailure } from "./step.ts";

export interface Mail {
  /** The same at every try, so that a mail that came twice can be told as one. */
  readonly id: string;
  readonly to: { readonly name: string; readonly email: string };
  readonly replyTo?: { readonly name: string; readonly email: string };
  readonly subject: string;
  readonly text: string;
  readonly invite?: { readonly method: "REQUEST" | "CANCEL"; readonly content: string };
}

export interface Mailer {
  /** Resolves when the server took the mail. @throws PermanentFailure when it never will */
  send(mail: Mail): Promise<void>;
}

export interface MailerOptions {
  /** SMTP_URL, `smtp://user:password@host:port` or `smtps://…`. */
  readonly url: string;
  /** MAIL_FROM, an address with or without a name. */
  readonly from: string;
  /** Time limit of one mail, from connecting to the server's last answer, in ms. Default 15 s. */
  readonly limitMs?: number;
}

/** @throws TypeError for an address that is not smtp(s) */
export function smtpMailer({ url, from, limitMs = 15_000 }: MailerOptions): Mailer {
  const server = URL.parse(url);
  if (server === null || !/^smtps?:$/.test(server.protocol))
    throw new TypeError("SMTP_URL must be an address such as smtp://user:password@host:587.");
  const secrets = [server.password, decodeURIComponent(server.password)];
  const transport = createTransport({
    url,
    connectionTimeout: limitMs,
    greetingTimeout: limitMs,
    socketTimeout: limitMs,
    dnsTimeout: limitMs,
    // A name or a title is never a file or an address to read from.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = from.match(/@([^\s>]+)/)?.[1] ?? "localhost";

  return {
    async send(mail) {
      refuseInTransaction("Sending a mail");
      // The limits of the transport are of silence; this one ends a server that answers a byte at a time.
      const signal = AbortSignal.timeout(limitMs);
      try {
        await transport.sendMail({
          signal,
          from,
          to: address(mail.to),
          ...(mail.replyTo === undefined ? {} : { replyTo: address(mail.replyTo) }),
          messageId: `<${mail.id}@${domain}>`,
          subject: mail.subject,
          text: mail.text,
          headers: { "Auto-Submitted": "auto-generated" },
          ...(mail.invite === undefined ? {} : { icalEvent: { ...mail.invite, filename: "invite.ics" } }),
        });
      } catch (error) {
        if (signal.aborted) throw new Error(`the mail server did not finish within ${limitMs} ms`);
        throw failure(error, secrets);
      }
    },
  };
}

function address({ name, email }: { readonly name: string; readonly email: string }) {
  return { name, address: email };
}

/** A refused recipient or message stays refused; a login, a connection or a full server may be mended. */
function failure(error: unknown, secrets: readonly string[]): Error {
  const message = `the mail was not taken: ${safeReason(error, secrets)}`;
  const { code, responseCode } = error as { readonly code?: unknown; readonly responseCode?: unknown };
  const isFinal =
    (code === "EENVELOPE" || code === "EMESSAGE") && typeof responseCode === "number" && responseCode >= 500;
  return isFinal ? new PermanentFailure(message) : new Error(message);
}
