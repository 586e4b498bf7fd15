import { ConfigurationError } from "hookwell";

export interface SideEffectSettings {
  /** SMTP_URL: without it no mail is sent. */
  readonly smtpUrl?: string;
  /** MAIL_FROM: who the mails are from, an address with or without a name. */
  readonly mailFrom?: string;
  /** CALENDAR_URL: without it no calendar is asked or kept. */
  readonly calendarUrl?: string;
}

/** @throws ConfigurationError; its message holds no password */
export function readSideEffectSettings(
  environment: Readonly<Record<string, string | undefined>>,
): SideEffectSettings {
  const smtpUrl = environment.SMTP_URL?.trim() ?? "";
  const calendarUrl = environment.CALENDAR_URL?.trim() ?? "";
  const mailFrom = environment.MAIL_FROM?.trim() ?? "";
  if (smtpUrl !== "" && !/^smtps?:$/.test(URL.parse(smtpUrl)?.protocol ?? ""))
    throw new ConfigurationError("SMTP_URL must be an address such as smtp://user:password@host:587.");
  if (calendarUrl !== "" && !/^https?:$/.test(URL.parse(calendarUrl)?.protocol ?? ""))
    throw new ConfigurationError("CALENDAR_URL must be an http(s) address.");
  if (mailFrom !== "" && !mailFrom.includes("@"))
    throw new ConfigurationError("MAIL_FROM must be an address such as Appointments <hello@example.com>.");
  return {
    ...(smtpUrl === "" ? {} : { smtpUrl }),
    ...(mailFrom === "" ? {} : { mailFrom }),
    ...(calendarUrl === "" ? {} : { calendarUrl }),
  };
}
