import type { ReceivedRequest } from "hookwell/testing";

/** A booking as one sees it who only gets webhooks. */
export interface SeenBooking {
  readonly status: string;
  readonly start_at: string;
  readonly end_at: string;
  readonly revision: number;
  /** `id` of each, the primary's with a star. */
  readonly hosts: readonly string[];
}

interface SeenEvent {
  readonly type: string;
  readonly data: {
    readonly booking_id?: string;
    readonly scheduling_invitation_id: string | null;
    readonly status: string;
    readonly start_at: string;
    readonly end_at: string;
    readonly previous_start_at?: string;
    readonly previous_end_at?: string;
    readonly revision: number;
    readonly hosts: readonly { readonly id: string; readonly is_primary: boolean }[];
  };
}

/** What a receiver makes of what it got: each event once, by its id, and of each booking the newest by revision. */
export interface Picture {
  readonly bookings: ReadonlyMap<string, SeenBooking>;
  /** Revisions that were told of, in order. */
  readonly revisions: ReadonlyMap<string, readonly number[]>;
  /** Status by invitation. */
  readonly invitations: ReadonlyMap<string, string>;
  /** Requests that repeated one that had arrived. */
  readonly repeats: number;
}

/** @throws Error for a repeat that differs, and a move that does not begin where the booking was */
export function pictureOf(requests: readonly ReceivedRequest[]): Picture {
  const events = new Map<string, SeenEvent>();
  const arrived = new Map<string, string>();
  let repeats = 0;
  for (const { path, headers, body } of requests) {
    const id = String(headers["webhook-id"]);
    const text = body.toString("utf8");
    const key = `${path} ${id}`;
    const whole = `${headers["x-hookwell-delivery"]} ${headers["x-hookwell-signature"]} ${text}`;
    const before = arrived.get(key);
    if (before !== undefined && before !== whole) throw new Error(`${key} was repeated with another content`);
    if (before !== undefined) repeats++;
    arrived.set(key, whole);
    const parsed = JSON.parse(text) as { id: string; event: string; data: SeenEvent["data"] };
    if (parsed.id !== id) throw new Error(`${key} has another id in its body: ${parsed.id}`);
    events.set(id, { type: parsed.event, data: parsed.data });
  }

  const byBooking = new Map<string, SeenEvent[]>();
  const invitations = new Map<string, string>();
  for (const event of events.values()) {
    const { data, type } = event;
    if (type.startsWith("scheduling_invitation.")) {
      const id = String(data.scheduling_invitation_id);
      // Every other status is final.
      if ((invitations.get(id) ?? "active") === "active") invitations.set(id, data.status);
      continue;
    }
    const id = String(data.booking_id);
    byBooking.set(id, [...(byBooking.get(id) ?? []), event]);
  }

  const bookings = new Map<string, SeenBooking>();
  const revisions = new Map<string, number[]>();
  for (const [id, told] of byBooking) {
    told.sort((a, b) => a.data.revision - b.data.revision);
    revisions.set(
      id,
      told.map(({ data }) => data.revision),
    );
    for (const [index, { data }] of told.entries()) {
      const before = told[index - 1]?.data;
      if (before === undefined || data.previous_start_at === undefined) continue;
      if (data.previous_start_at !== before.start_at || data.previous_end_at !== before.end_at)
        throw new Error(`Revision ${data.revision} of booking ${id} did not begin where it was`);
    }
    const { status, start_at, end_at, revision, hosts } = told.at(-1)!.data;
    bookings.set(id, { status, start_at, end_at, revision, hosts: markHosts(hosts) });
  }
  return { bookings, revisions, invitations, repeats };
}

export function markHosts(hosts: readonly { readonly id: string; readonly is_primary: boolean }[]): string[] {
  return hosts.map(({ id, is_primary }) => (is_primary ? `${id}*` : id)).sort();
}
