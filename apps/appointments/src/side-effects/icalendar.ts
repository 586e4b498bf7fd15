import { domainToASCII } from "node:url";

/** A change of one appointment as a calendar program is told of it (RFC 5545, RFC 5546). */
export interface Invite {
  /** REQUEST puts it into the calendar or moves it there, CANCEL takes it out. */
  readonly method: "REQUEST" | "CANCEL";
  /** The same in every message about one appointment. */
  readonly uid: string;
  /** Rises with every change. */
  readonly sequence: number;
  /** When this message was made. */
  readonly stamp: Date;
  /** RFC 3339 in UTC. */
  readonly startAt: string;
  readonly endAt: string;
  readonly title: string;
  readonly description: string;
  readonly location: string;
  readonly organizer: Person;
  readonly attendees: readonly Person[];
}

interface Person {
  readonly name: string;
  readonly email: string;
}

/** The UID of a booking, everywhere. */
export function bookingUid(bookingId: string): string {
  return `${bookingId}@appointments.hookwell`;
}

/**
 * The text of an `.ics` part. Times are in UTC: an appointment is an instant, and no table of daylight saving rules
 * can be wrong about it.
 */
export function icalendar(invite: Invite): string {
  const isCancel = invite.method === "CANCEL";
  const lines = [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Hookwell//Appointments//EN",
    "CALSCALE:GREGORIAN",
    `METHOD:${invite.method}`,
    "BEGIN:VEVENT",
    `UID:${escapeText(invite.uid)}`,
    `SEQUENCE:${invite.sequence}`,
    `DTSTAMP:${utc(invite.stamp)}`,
    `DTSTART:${utc(new Date(invite.startAt))}`,
    `DTEND:${utc(new Date(invite.endAt))}`,
    `SUMMARY:${escapeText(invite.title)}`,
    ...(invite.description === "" ? [] : [`DESCRIPTION:${escapeText(invite.description)}`]),
    ...(invite.location === "" ? [] : [`LOCATION:${escapeText(invite.location)}`]),
    `ORGANIZER${commonName(invite.organizer.name)}:${mailto(invite.organizer.email)}`,
    ...invite.attendees.map(
      ({ name, email }) =>
        // Who booked has accepted; nobody is asked to reply.
        `ATTENDEE${commonName(name)};CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED:${mailto(email)}`,
    ),
    `STATUS:${isCancel ? "CANCELLED" : "CONFIRMED"}`,
    "TRANSP:OPAQUE",
    "END:VEVENT",
    "END:VCALENDAR",
  ];
  return `${lines.map(fold).join("\r\n")}\r\n`;
}

/** 20310310T090000Z */
function utc(time: Date): string {
  return time
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replaceAll(/[-:]/g, "");
}

/** TEXT of RFC 5545: no control characters but tab, and line ends are written \n. */
function escapeText(text: string): string {
  return clean(text)
    .replaceAll("\\", "\\\\")
    .replaceAll(";", "\\;")
    .replaceAll(",", "\\,")
    .replaceAll("\n", "\\n");
}

/** A parameter in quotes, with the characters that quotes cannot hold as RFC 6868 writes them. */
function commonName(name: string): string {
  if (name === "") return "";
  const value = clean(name).replaceAll("^", "^^").replaceAll("\n", "^n").replaceAll('"', "^'");
  return `;CN="${value}"`;
}

function mailto(address: string): string {
  const at = address.lastIndexOf("@");
  const local = encodeURIComponent(address.slice(0, at)).replaceAll("%2B", "+");
  return `mailto:${local}@${domainToASCII(address.slice(at + 1)) || address.slice(at + 1)}`;
}

function clean(text: string): string {
  return (
    text
      .toWellFormed()
      .replaceAll(/\r\n?|[\u2028\u2029]/g, "\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
      .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
  );
}

const lineOctets = 75;

/** Lines of at most 75 octets; a character is never cut in two. */
function fold(line: string): string {
  const parts: string[] = [];
  let part = "";
  let octets = 0;
  for (const character of line) {
    const size = Buffer.byteLength(character);
    if (octets + size > lineOctets) {
      parts.push(part);
      // The space that continues a line counts.
      part = " ";
      octets = 1;
    }
    part += character;
    octets += size;
  }
  return [...parts, part].join("\r\n");
}
