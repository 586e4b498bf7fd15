import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { hashManageToken } from "../../src/bookings/manage-token.ts";
import { migrateApp } from "../../src/database/migrations.ts";
import type { AppDatabase } from "../../src/database/schema.ts";
import { dialects } from "../support/world.ts";
import { dataOf, ok, openBookingWorld } from "./support/booking-world.ts";

const token = randomBytes(32).toString("hex");
const host = "0c0f1f10-0000-4000-8000-000000000001";
const time = "2030-11-01T08:00:00.000Z";
const common = { project_id: "live", tenant_id: "", created_at: time, updated_at: time };
const tables = ["users", "event_types", "scheduling_invitations", "bookings", "booking_hosts"] as const;

/** A database as the version before captured events left it: its bookings have no revision. */
async function populate(db: AppDatabase): Promise<void> {
  await migrateApp(db, "0004_scheduling");
  const insert = async (table: string, row: Record<string, unknown>): Promise<void> => {
    const columns = sql.join(Object.keys(row).map((name) => sql.ref(name)));
    const values = sql.join(Object.values(row));
    await sql`INSERT INTO ${sql.table(table)} (${columns}) VALUES (${values})`.execute(db);
  };
  await insert("users", {
    ...common,
    id: host,
    email: "old@example.com",
    email_key: "old@example.com",
    name: "Old host",
    status: "active",
    email_verified: 1,
    iana_timezone: "UTC",
    is_admin: 0,
    revision: 4,
  });
  for (const day of [0, 1, 2, 3, 4, 5, 6])
    await insert("availability_rules", {
      id: `rule-${day}`,
      user_id: host,
      day_of_week: day,
      start_time: "09:00",
      end_time: "17:00",
    });
  const policy = {
    duration_minutes: 30,
    slot_interval_minutes: 30,
    location_type: "meeting",
    location_value: "",
    routing_mode: "fixed",
    buffer_before_minutes: 0,
    buffer_after_minutes: 0,
    min_notice_minutes: 0,
    max_future_days: 60,
  };
  await insert("event_types", {
    ...common,
    ...policy,
    id: "old-type",
    user_id: host,
    slug: "old",
    name: "Old",
    max_active_bookings: 0,
    is_active: 1,
  });
  await insert("scheduling_invitations", {
    ...common,
    ...policy,
    id: "old-invitation",
    event_type_id: "old-type",
    creator_id: host,
    recipient_name: "Grace",
    recipient_email: "grace@example.com",
    status: "booked",
    booking_id: "from-invitation",
    expires_at: "2031-06-01T00:00:00.000Z",
  });
  for (const [id, invitation, hour] of [
    ["from-invitation", "old-invitation", 10],
    ["ordinary", null, 11],
  ] as const) {
    await insert("bookings", {
      ...common,
      id,
      event_type_id: "old-type",
      host_id: host,
      start_at: `2031-03-04T${hour}:00:00.000Z`,
      end_at: `2031-03-04T${hour}:30:00.000Z`,
      status: "confirmed",
      location_type: "meeting",
      location_value: "https://meet.example.com/old",
      scheduling_invitation_id: invitation,
      buffer_before_minutes: 0,
      buffer_after_minutes: 0,
    });
    await insert("booking_hosts", { booking_id: id, user_id: host, is_primary: 1, needs_sync: 0 });
    await insert("booking_attendees", {
      id: `attendee-${id}`,
      booking_id: id,
      name: "Grace",
      email: "grace@example.com",
      email_key: "grace@example.com",
      timezone: "UTC",
      is_organizer: 1,
    });
  }
  await insert("booking_manage_tokens", {
    hash: hashManageToken(token),
    booking_id: "from-invitation",
    expires_at: "2031-06-01T00:00:00.000Z",
  });
}

test.each(dialects)(
  "bookings 70: on %s an upgraded database keeps its rows without a history, and the first move is one event",
  async (dialect) => {
    const before: Record<string, unknown> = {};
    await using world = await openBookingWorld(dialect, {
      async populate(db) {
        await populate(db);
        for (const table of tables) before[table] = await rowsOf(db, table);
      },
    });
    for (const table of tables) {
      const added = table === "bookings" ? { revision: 0, location_revision: 0 } : {};
      const old = before[table] as { id?: string }[];
      // The first run adds its admin.
      const after = (await rowsOf(world.db, table)).filter(
        (row) => table !== "users" || old.some(({ id }) => id === row.id),
      );
      expect(after).toEqual(old.map((row) => ({ ...row, ...added })));
    }
    const about = async () => (await world.events()).filter(({ type }) => !type.startsWith("user."));
    expect(await about()).toEqual([]);
    expect((await world.admin.get("/v1/bookings/from-invitation")).body).toMatchObject({ revision: 0 });

    const moved = await world.customer.post(`/manage/${token}/reschedule`, {
      start_at: "2031-03-05T09:00:00Z",
    });
    ok(moved, 200);
    const [event, ...rest] = await about();
    expect(rest).toEqual([]);
    expect(event).toMatchObject({ type: "booking.rescheduled", revision: 1, audience: [host] });
    expect(dataOf(event!)).toMatchObject({
      booking_id: "from-invitation",
      revision: 1,
      previous_start_at: "2031-03-04T10:00:00.000Z",
      start_at: "2031-03-05T09:00:00.000Z",
      location_value: "https://meet.example.com/old",
    });
    ok(await world.customer.post(`/manage/${token}/cancel`), 200);
    expect((await about()).map(({ type, revision }) => [type, revision])).toEqual([
      ["booking.rescheduled", 1],
      ["booking.cancelled", 2],
    ]);
    // The ordinary one goes on as ordinary ones do.
    ok(await world.admin.post("/v1/bookings/ordinary/cancel"), 200);
    expect(await world.bookingRow("ordinary")).toMatchObject({ status: "cancelled", revision: 0 });
    expect((await about()).at(-1)!.revision).toBeUndefined();
  },
);

async function rowsOf(db: AppDatabase, table: (typeof tables)[number]): Promise<Record<string, unknown>[]> {
  const { rows } = await sql<Record<string, unknown>>`SELECT * FROM ${sql.table(table)}`.execute(db);
  const key = (row: Record<string, unknown>): string => String(row.id ?? row.booking_id);
  return rows.map((row) => ({ ...row })).sort((a, b) => key(a).localeCompare(key(b)));
}
