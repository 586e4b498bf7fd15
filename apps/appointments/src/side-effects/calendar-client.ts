import { z } from "zod";
import { refuseInTransaction } from "../database/transaction-guard.ts";
import { instantOf, isTimestamp, type Period } from "../scheduling/calendar.ts";
import { PermanentFailure } from "./step.ts";

/** A host as the calendar provider knows it: our id, and the address of the calendar. */
export interface CalendarHost {
  readonly id: string;
  readonly email: string;
  readonly name: string;
}

/** An entry in the calendar of one host. */
export interface CalendarEvent {
  readonly host: CalendarHost;
  /** The same in the calendars of all hosts, and in the iCalendar mails. */
  readonly uid: string;
  /** Rises with every change: the provider refuses (409) what is older than what it has. */
  readonly sequence: number;
  readonly title: string;
  readonly startAt: string;
  readonly endAt: string;
  readonly location: string;
  readonly attendee: { readonly name: string; readonly email: string };
  /** Asks for a link to meet at. */
  readonly wantsMeetingLink: boolean;
}

export interface SavedEvent {
  /** The provider's own id of the entry. */
  readonly id: string;
  readonly meetingUrl?: string;
}

/** An HTTP calendar provider; README.md has its contract. Every call has a time limit and rejects when it is over. */
export interface CalendarClient {
  /** When hosts are busy with what is not from this application, by host id. */
  freeBusy(
    hosts: readonly CalendarHost[],
    from: number,
    to: number,
  ): Promise<ReadonlyMap<string, readonly Period[]>>;
  /** Makes the entry with this key, or changes it. Undefined when the provider has a newer one. */
  put(key: string, event: CalendarEvent): Promise<SavedEvent | undefined>;
  /** Takes it out. One that is not there is out. */
  remove(key: string, sequence: number): Promise<void>;
}

export interface CalendarOptions {
  /** CALENDAR_URL. User and password in it are sent as Basic authorization. */
  readonly url: string;
  readonly fetch?: typeof fetch;
  /** Time limits in ms. Default 10 s to change an entry, 5 s for free/busy, which a customer waits for. */
  readonly eventMs?: number;
  readonly freeBusyMs?: number;
}

const maxAnswerBytes = 1024 * 1024;

const savedShape = z.object({
  id: z.string().min(1).max(255),
  meeting_url: z.string().max(2000).refine(isLink, "must be an http(s) address").nullish(),
});

const busyShape = z.object({
  busy: z
    .array(
      z.object({
        host_id: z.string(),
        start_at: z.string().refine(isTimestamp, "must be an RFC 3339 time"),
        end_at: z.string().refine(isTimestamp, "must be an RFC 3339 time"),
        /** Ours: the key of the entry that takes this time. */
        key: z.string().nullish(),
      }),
    )
    .max(10_000),
});

/** @throws TypeError for an address that is not http(s) */
export function calendarClient(options: CalendarOptions): CalendarClient {
  const { base, authorization } = parseAddress(options.url);
  const { eventMs = 10_000, freeBusyMs = 5_000 } = options;
  const send = options.fetch ?? fetch;

  async function call(
    method: "POST" | "PUT" | "DELETE",
    path: string,
    limitMs: number,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }> {
    refuseInTransaction("A call to the calendar");
    const signal = AbortSignal.timeout(limitMs);
    try {
      const response = await send(new URL(path, base), {
        method,
        signal,
        redirect: "manual",
        headers: {
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(authorization === undefined ? {} : { authorization }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await readText(response) };
    } catch (cause) {
      if (signal.aborted) throw new Error(`the calendar did not answer within ${limitMs} ms`, { cause });
      if (cause instanceof CalendarAnswerError) throw cause;
      throw new Error(`the calendar cannot be reached (${reason(cause)})`, { cause });
    }
  }

  return {
    async freeBusy(hosts, from, to) {
      const answer = await call("POST", "free-busy", freeBusyMs, {
        hosts: hosts.map(({ id, email }) => ({ id, email })),
        from: new Date(from).toISOString(),
        to: new Date(to).toISOString(),
      });
      if (answer.status !== 200) throw refused(answer.status);
      const { busy } = parse(busyShape, answer.text);
      const periods = new Map<string, Period[]>(hosts.map(({ id }) => [id, []]));
      for (const entry of busy) {
        // Our own bookings are known better from the database: one that moved may still be in the calendar.
        if (entry.key) continue;
        const period = { start: instantOf(entry.start_at), end: instantOf(entry.end_at, "ceil") };
        if (period.end > period.start) periods.get(entry.host_id)?.push(period);
      }
      return periods;
    },
    async put(key, event) {
      const answer = await call("PUT", `events/${encodeURIComponent(key)}`, eventMs, {
        uid: event.uid,
        sequence: event.sequence,
        host: event.host,
        title: event.title,
        start_at: event.startAt,
        end_at: event.endAt,
        location: event.location,
        attendees: [event.attendee],
        meeting_link: event.wantsMeetingLink,
      });
      if (answer.status === 409) return undefined;
      if (answer.status !== 200 && answer.status !== 201) throw refused(answer.status);
      const { id, meeting_url } = parse(savedShape, answer.text);
      return { id, ...(meeting_url ? { meetingUrl: meeting_url } : {}) };
    },
    async remove(key, sequence) {
      const path = `events/${encodeURIComponent(key)}?sequence=${sequence}`;
      const { status } = await call("DELETE", path, eventMs);
      if (![200, 202, 204, 404, 410].includes(status)) throw refused(status);
    },
  };
}

/** What the provider answered is not what its contract says. */
class CalendarAnswerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "CalendarAnswerError";
  }
}

function refused(status: number): Error {
  const message = `the calendar answered ${status}`;
  // What is wrong with this entry stays wrong; a missing right, a limit or a fault may pass.
  return status === 400 || status === 422 ? new PermanentFailure(message) : new CalendarAnswerError(message);
}

function parse<T>(shape: z.ZodType<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CalendarAnswerError("the calendar's answer is not JSON");
  }
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue ? `${issue.path.join(".") || "answer"}: ${issue.message}` : "";
  throw new CalendarAnswerError(`the calendar's answer has another shape (${where})`);
}

/** An answer without end must not fill the memory. */
async function readText(response: Response): Promise<string> {
  if (response.body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > maxAnswerBytes) throw new CalendarAnswerError("the calendar's answer is over 1 MiB");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function parseAddress(address: string): { readonly base: URL; readonly authorization?: string } {
  const base = URL.parse(address);
  if (base === null || !/^https?:$/.test(base.protocol))
    throw new TypeError("CALENDAR_URL must be an http(s) address.");
  const user = decodeURIComponent(base.username);
  const password = decodeURIComponent(base.password);
  base.username = "";
  base.password = "";
  base.search = "";
  base.hash = "";
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  if (user === "" && password === "") return { base };
  return { base, authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

function isLink(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "") && !/[\u0000-\u0020\u007f-\u009f]/.test(text);
}

/** fetch hides why behind "fetch failed". */
function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (typeof cause === "object" && cause !== null && "code" in cause) return String(cause.code);
  return cause instanceof Error ? cause.message : String(cause);
}
