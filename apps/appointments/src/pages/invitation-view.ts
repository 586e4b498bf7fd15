import type { AppDatabase } from "../database/schema.ts";
import { isBookable } from "../event-types/event-type.ts";
import { findEventType, questionsOf } from "../event-types/event-type-queries.ts";
import { type Invitation, statusAt } from "../invitations/invitation.ts";
import { findInvitationByToken } from "../invitations/invitation-queries.ts";
import type { Question } from "../scheduling/answers.ts";
import { stricterReach } from "../scheduling/window.ts";
import { type StartBounds, startBounds } from "./picker-fields.ts";
import { placeOffered } from "./place.ts";

/** What the page of an invitation shows. */
export interface OpenInvitation {
  readonly state: "open";
  readonly title: string;
  readonly recipient: string;
  readonly hosts: string;
  readonly durationMinutes: number;
  readonly place: string;
  readonly expiresAt: string;
  readonly bounds: StartBounds;
  readonly questions: readonly Question[];
}

export type InvitationView =
  | OpenInvitation
  | { readonly state: "unknownInvitation" | "booked" | "cancelled" | "expired" | "unavailable" };

export async function readInvitationView(db: AppDatabase, token: string, now: Date): Promise<InvitationView> {
  const invitation = await findInvitationByToken(db, token);
  if (invitation === undefined) return { state: "unknownInvitation" };
  const status = statusAt(invitation, now);
  if (status !== "active") return { state: status };
  const eventType = await findEventType(db, invitation.eventTypeId);
  if (eventType === undefined || !isBookable(eventType)) return { state: "unavailable" };
  return {
    state: "open",
    title: eventType.name,
    recipient: invitation.recipient.name,
    hosts: await hostNames(db, invitation),
    durationMinutes: invitation.durationMinutes,
    place: placeOffered({ type: invitation.locationType, value: invitation.locationValue }),
    expiresAt: invitation.expiresAt,
    bounds: startBounds(now.getTime(), {
      ...stricterReach(invitation, eventType),
      window: invitation.window,
      durationMinutes: invitation.durationMinutes,
    }),
    questions: await questionsOf(db, invitation.eventTypeId),
  };
}

/** Whom one will meet, as far as that is known before a time is chosen. */
async function hostNames(db: AppDatabase, invitation: Invitation): Promise<string> {
  const able = invitation.hosts.filter((host) => host.role !== "optional");
  const rows = await db
    .selectFrom("users")
    .select(["id", "name"])
    .where(
      "id",
      "in",
      able.map((host) => host.userId),
    )
    .where("status", "=", "active")
    .execute();
  const names = new Map(rows.map((row) => [row.id, row.name]));
  const namesOf = (hosts: typeof able): string[] => hosts.flatMap((host) => names.get(host.userId) ?? []);
  switch (invitation.routingMode) {
    case "fixed":
      return list(namesOf(able.slice(0, 1)), "conjunction");
    case "collective":
      return list(namesOf(able), "conjunction");
    case "priority":
      return list(namesOf(able), "disjunction");
    case "round_robin": {
      const required = namesOf(able.filter((host) => host.role === "required"));
      const rotation = namesOf(able.filter((host) => host.role === "rotation"));
      const oneOf = rotation.length === 0 ? [] : [list(rotation, "disjunction")];
      return list([...required, ...oneOf], "conjunction");
    }
  }
}

function list(names: readonly string[], type: "conjunction" | "disjunction"): string {
  return new Intl.ListFormat("en-GB", { type }).format(names);
}
