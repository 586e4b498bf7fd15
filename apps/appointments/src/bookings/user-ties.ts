import type { AppTransaction } from "../database/schema.ts";
import { ProblemError } from "../http/problem.ts";

/** What of this half of the application holds on to a user. Called with the user's row locked. */
export interface UserTies {
  /** @throws ProblemError 409 while the user has upcoming bookings */
  refuseArchive(trx: AppTransaction, userId: string): Promise<void>;
  /** @throws ProblemError 409 when a booking, an invitation or an event type refers to the user */
  refuseRemoval(trx: AppTransaction, userId: string): Promise<void>;
  /** Takes the hours of a user that is removed, and its places among hosts, with it. */
  removeWith(trx: AppTransaction, userId: string): Promise<void>;
}

export function userTies(now: () => Date): UserTies {
  return {
    async refuseArchive(trx, userId) {
      const upcoming = await trx
        .selectFrom("booking_hosts")
        .innerJoin("bookings", "bookings.id", "booking_hosts.booking_id")
        .select("bookings.id")
        .where("booking_hosts.user_id", "=", userId)
        .where("bookings.status", "=", "confirmed")
        .where("bookings.end_at", ">", now().toISOString())
        .limit(1)
        .executeTakeFirst();
      if (upcoming !== undefined)
        throw new ProblemError(
          "conflict",
          `This user has upcoming bookings, such as ${upcoming.id}. Cancel them or give them to another host first.`,
        );
    },
    async refuseRemoval(trx, userId) {
      const { count } = await trx
        .selectNoFrom((from) => [
          from
            .exists(from.selectFrom("booking_hosts").select("user_id").where("user_id", "=", userId))
            .as("hosted"),
          from.exists(from.selectFrom("event_types").select("id").where("user_id", "=", userId)).as("owned"),
          from
            .exists(from.selectFrom("scheduling_invitations").select("id").where("creator_id", "=", userId))
            .as("invited"),
          from
            .exists(
              from.selectFrom("scheduling_invitation_hosts").select("user_id").where("user_id", "=", userId),
            )
            .as("chosen"),
        ])
        .executeTakeFirstOrThrow()
        .then((found) => ({ count: Object.values(found).filter(Boolean).length }));
      if (count > 0)
        throw new ProblemError(
          "conflict",
          "Event types, invitations or bookings refer to this user. Archive it instead of deleting it.",
        );
    },
    async removeWith(trx, userId) {
      for (const table of ["event_type_hosts", "availability_rules", "availability_overrides"] as const)
        await trx.deleteFrom(table).where("user_id", "=", userId).execute();
    },
  };
}
