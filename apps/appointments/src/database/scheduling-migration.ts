import type { CreateTableBuilder, Kysely } from "kysely";
import type { Migration } from "kysely/migration";

type Column = "text" | "integer";

/** A column list as words: `?` at the end of a name = may be null. */
function columns<Table extends string>(
  builder: CreateTableBuilder<Table, string>,
  list: Readonly<Record<string, Column>>,
): CreateTableBuilder<Table, string> {
  return Object.entries(list).reduce((table, [name, type]) => {
    const optional = name.endsWith("?");
    return table.addColumn(optional ? name.slice(0, -1) : name, type, (column) =>
      optional ? column : column.notNull(),
    ) as CreateTableBuilder<Table, string>;
  }, builder);
}

/** Scheduling invitations and bookings. Additive: nothing of the users half changes. */
export const schedulingMigration: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const table = (name: string, list: Readonly<Record<string, Column>>) =>
      columns(db.schema.createTable(name) as CreateTableBuilder<string, string>, list);

    await table("event_types", {
      id: "text",
      project_id: "text",
      tenant_id: "text",
      user_id: "text",
      slug: "text",
      name: "text",
      duration_minutes: "integer",
      "duration_min_minutes?": "integer",
      "duration_max_minutes?": "integer",
      "duration_increment_minutes?": "integer",
      slot_interval_minutes: "integer",
      location_type: "text",
      location_value: "text",
      routing_mode: "text",
      buffer_before_minutes: "integer",
      buffer_after_minutes: "integer",
      min_notice_minutes: "integer",
      max_future_days: "integer",
      max_active_bookings: "integer",
      is_active: "integer",
      "archived_at?": "text",
      created_at: "text",
      updated_at: "text",
    })
      .addPrimaryKeyConstraint("event_types_pk", ["id"])
      .addUniqueConstraint("event_types_slug_unique", ["project_id", "tenant_id", "slug"])
      .execute();
    await table("event_type_hosts", {
      event_type_id: "text",
      user_id: "text",
      role: "text",
      priority: "integer",
      position: "integer",
    })
      .addPrimaryKeyConstraint("event_type_hosts_pk", ["event_type_id", "user_id"])
      .execute();
    await table("questions", {
      id: "text",
      event_type_id: "text",
      label: "text",
      type: "text",
      options: "text",
      required: "integer",
      position: "integer",
    })
      .addPrimaryKeyConstraint("questions_pk", ["id"])
      .execute();
    await table("availability_rules", {
      id: "text",
      user_id: "text",
      "event_type_id?": "text",
      day_of_week: "integer",
      start_time: "text",
      end_time: "text",
    })
      .addPrimaryKeyConstraint("availability_rules_pk", ["id"])
      .execute();
    await table("availability_overrides", {
      id: "text",
      user_id: "text",
      date: "text",
      is_available: "integer",
      "start_time?": "text",
      "end_time?": "text",
    })
      .addPrimaryKeyConstraint("availability_overrides_pk", ["id"])
      .execute();
    await table("scheduling_invitations", {
      id: "text",
      project_id: "text",
      tenant_id: "text",
      event_type_id: "text",
      creator_id: "text",
      recipient_name: "text",
      recipient_email: "text",
      duration_minutes: "integer",
      slot_interval_minutes: "integer",
      buffer_before_minutes: "integer",
      buffer_after_minutes: "integer",
      min_notice_minutes: "integer",
      max_future_days: "integer",
      routing_mode: "text",
      "available_from?": "text",
      "available_until?": "text",
      "availability_timezone?": "text",
      "external_system?": "text",
      "external_reference?": "text",
      "external_url?": "text",
      location_type: "text",
      location_value: "text",
      status: "text",
      "booking_id?": "text",
      expires_at: "text",
      created_at: "text",
      updated_at: "text",
    })
      .addPrimaryKeyConstraint("scheduling_invitations_pk", ["id"])
      .execute();
    await table("scheduling_invitation_hosts", {
      invitation_id: "text",
      user_id: "text",
      role: "text",
      priority: "integer",
      position: "integer",
    })
      .addPrimaryKeyConstraint("scheduling_invitation_hosts_pk", ["invitation_id", "user_id"])
      .execute();
    await table("scheduling_invitation_tokens", {
      hash: "text",
      invitation_id: "text",
      "consumed_at?": "text",
    })
      .addPrimaryKeyConstraint("scheduling_invitation_tokens_pk", ["hash"])
      .addUniqueConstraint("scheduling_invitation_tokens_one", ["invitation_id"])
      .execute();
    await table("bookings", {
      id: "text",
      project_id: "text",
      tenant_id: "text",
      event_type_id: "text",
      host_id: "text",
      start_at: "text",
      end_at: "text",
      status: "text",
      "cancellation_reason?": "text",
      location_type: "text",
      location_value: "text",
      "scheduling_invitation_id?": "text",
      buffer_before_minutes: "integer",
      buffer_after_minutes: "integer",
      created_at: "text",
      updated_at: "text",
    })
      .addPrimaryKeyConstraint("bookings_pk", ["id"])
      // NULLs are distinct on both databases: ordinary bookings have none.
      .addUniqueConstraint("bookings_invitation_unique", ["scheduling_invitation_id"])
      .execute();
    await table("booking_hosts", {
      booking_id: "text",
      user_id: "text",
      is_primary: "integer",
      "external_event_id?": "text",
      needs_sync: "integer",
    })
      .addPrimaryKeyConstraint("booking_hosts_pk", ["booking_id", "user_id"])
      .execute();
    await table("booking_attendees", {
      id: "text",
      booking_id: "text",
      name: "text",
      email: "text",
      email_key: "text",
      timezone: "text",
      is_organizer: "integer",
    })
      .addPrimaryKeyConstraint("booking_attendees_pk", ["id"])
      .execute();
    await table("booking_answers", { booking_id: "text", question_id: "text", value: "text" })
      .addPrimaryKeyConstraint("booking_answers_pk", ["booking_id", "question_id"])
      .execute();
    await table("booking_manage_tokens", { hash: "text", booking_id: "text", expires_at: "text" })
      .addPrimaryKeyConstraint("booking_manage_tokens_pk", ["hash"])
      .execute();
    await table("side_effects", {
      id: "text",
      booking_id: "text",
      revision: "integer",
      sequence: "integer",
      lane: "text",
      kind: "text",
      target: "text",
      status: "text",
      attempts: "integer",
      run_at: "text",
      "lease_until?": "text",
      "last_error?": "text",
      detail: "text",
      created_at: "text",
      updated_at: "text",
    })
      .addPrimaryKeyConstraint("side_effects_pk", ["id"])
      .execute();

    const indexes: readonly [string, string, readonly string[]][] = [
      ["event_types_by_owner", "event_types", ["user_id"]],
      ["event_type_hosts_by_user", "event_type_hosts", ["user_id"]],
      ["questions_by_event_type", "questions", ["event_type_id", "position"]],
      ["availability_rules_by_user", "availability_rules", ["user_id"]],
      ["availability_overrides_by_user", "availability_overrides", ["user_id", "date"]],
      ["invitations_by_creator", "scheduling_invitations", ["creator_id", "created_at", "id"]],
      ["invitations_by_event_type", "scheduling_invitations", ["event_type_id"]],
      ["invitations_by_expiry", "scheduling_invitations", ["status", "expires_at"]],
      ["bookings_by_host", "bookings", ["host_id", "start_at"]],
      ["bookings_by_event_type", "bookings", ["event_type_id"]],
      ["booking_hosts_by_user", "booking_hosts", ["user_id"]],
      ["booking_attendees_by_booking", "booking_attendees", ["booking_id"]],
      ["booking_attendees_by_email", "booking_attendees", ["email_key"]],
      ["booking_answers_by_question", "booking_answers", ["question_id"]],
      ["booking_manage_tokens_by_booking", "booking_manage_tokens", ["booking_id"]],
      ["side_effects_waiting", "side_effects", ["status", "run_at"]],
      ["side_effects_by_booking", "side_effects", ["booking_id"]],
    ];
    for (const [name, on, list] of indexes)
      await db.schema
        .createIndex(name)
        .on(on)
        .columns([...list])
        .execute();
  },
};

/**
 * Revisions of bookings, which their captured events carry. A booking that was there before has had none: it is at 0,
 * and nothing is told of its past.
 */
export const bookingRevisionsMigration: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const name of ["revision", "location_revision"])
      await db.schema
        .alterTable("bookings")
        .addColumn(name, "integer", (column) => column.notNull().defaultTo(0))
        .execute();
  },
};
