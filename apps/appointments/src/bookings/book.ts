import type { Actor } from "hookwell";
import type { AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { type EventType, type EventTypeHost, isBookable } from "../event-types/event-type.ts";
import {
  findEventTypeBySlug,
  hostsOf,
  lockEventType,
  questionsOf,
} from "../event-types/event-type-queries.ts";
import { invalid, notFound, ProblemError } from "../http/problem.ts";
import type { Invitation } from "../invitations/invitation.ts";
import { lockInvitation } from "../invitations/invitation-queries.ts";
import { invitationSlotsInput, whyUnusable } from "../invitations/invitation-slots.ts";
import { moveInvitation } from "../invitations/lifecycle.ts";
import { type Answer, type GivenAnswer, readAnswers } from "../scheduling/answers.ts";
import { instantOf, minuteMs, type Period } from "../scheduling/calendar.ts";
import { slotAt } from "../scheduling/slots.ts";
import type { Caller } from "../users/user-access.ts";
import { refuseTooManyBookings } from "./booking-limits.ts";
import { lockHosts } from "./booking-rows.ts";
import { calendarBusy } from "./calendar-busy.ts";
import { notRecorded, type Transition } from "./capture.ts";
import type { BookingDeps } from "./deps.ts";
import { issueManageToken } from "./manage-token.ts";
import { insertBooking } from "./new-booking.ts";
import { ordinarySlotsInput } from "./ordinary-slots.ts";
import { refusePast, slotUnavailable } from "./times.ts";

/** A booking that was just made. */
export interface Booked extends Transition {
  /** Seen this once: only its hash is stored. */
  readonly manageToken: string;
}

export interface BookingChoice {
  readonly start_at: string;
  /** IANA zone of the customer. */
  readonly timezone: string;
  readonly answers: readonly GivenAnswer[];
}

export interface OrdinaryBooking extends BookingChoice {
  readonly event_type_slug: string;
  readonly name: string;
  readonly email: string;
}

/** The two ways to book. */
export interface BookCalls {
  /**
   * Uses an invitation.
   * @throws ProblemError 410 when it is unusable, 400 for answers, 409, 429, 503 without a calendar or its event
   */
  byInvitation(invitation: Invitation, eventType: EventType, choice: BookingChoice): Promise<Booked>;
  /** Without one, by staff, for a customer. @throws ProblemError 400, 404, 409, 503 */
  ordinary(caller: Caller, choice: OrdinaryBooking): Promise<Booked>;
}

export function bookingCalls(deps: BookingDeps): BookCalls {
  return {
    byInvitation: (invitation, eventType, choice) =>
      book(deps, {
        eventType,
        choice,
        by: "customer",
        attendee: invitation.recipient,
        actor: { type: "customer", id: invitation.id },
        hosts: invitation.hosts,
        invitation,
      }),
    async ordinary(caller, choice) {
      const slug = choice.event_type_slug;
      const eventType = await findEventTypeBySlug(deps.db, caller, slug);
      if (eventType === undefined || !mayBook(caller, eventType) || !isBookable(eventType))
        throw notFound("event type", slug);
      return await book(deps, {
        eventType,
        choice,
        by: "staff",
        attendee: choice,
        actor: { type: "api_key", id: caller.keyId },
        hosts: await hostsOf(deps.db, eventType.id),
      });
    },
  };
}

/** Everybody of a tenant books its appointments; an admin without a tenant those of all. */
function mayBook({ user }: Caller, eventType: EventType): boolean {
  return user.tenantId === eventType.tenantId || (user.isAdmin && user.tenantId === undefined);
}

interface BookRequest {
  readonly eventType: EventType;
  readonly choice: BookingChoice;
  readonly by: "customer" | "staff";
  readonly attendee: { readonly name: string; readonly email: string };
  readonly actor: Actor;
  /** Those it may be with: what their calendars say is asked before the transaction. */
  readonly hosts: readonly EventTypeHost[];
  readonly invitation?: Invitation;
}

/** Everything is looked at again inside the transaction; only calendars are asked before it. */
async function book(deps: BookingDeps, request: BookRequest): Promise<Booked> {
  const { choice, by, invitation, hosts } = request;
  readChoice(await questionsOf(deps.db, request.eventType.id), choice);
  refusePast(choice.start_at, deps.now(), by);
  const start = instantOf(choice.start_at);
  const minutes = (invitation ?? request.eventType).durationMinutes;
  const hostIds = hosts.map((host) => host.userId);
  const busy = await calendarBusy(deps.calendars, hostIds, { start, end: start + minutes * minuteMs });

  const booked = await inTransaction(deps.db, (trx) => bookIn(trx, deps, request, busy)).catch(
    notRecorded("event_not_captured"),
  );
  await deps.transitions.committed(booked);
  return booked;
}

async function bookIn(
  trx: AppTransaction,
  deps: BookingDeps,
  request: BookRequest,
  busy: ReadonlyMap<string, readonly Period[]>,
): Promise<Booked> {
  const { dialect, transitions } = deps;
  const { choice, actor, attendee } = request;
  // Always in this order: invitation, event type, hosts by id.
  const invitation = await usable(trx, deps, request.invitation);
  const eventType = await lockEventType(trx, dialect, request.eventType.id);
  const now = deps.now();
  refuseUnusable(invitation, eventType, request.eventType.slug, now);
  await lockHosts(
    trx,
    dialect,
    request.hosts.map((host) => host.userId),
  );

  const answers = readChoice(await questionsOf(trx, eventType.id), choice);
  const start = instantOf(choice.start_at);
  const at = { range: { start, end: start + 1 }, now, calendarBusy: busy };
  const input =
    invitation === undefined
      ? await ordinarySlotsInput(trx, eventType, request.hosts, at)
      : await invitationSlotsInput(trx, invitation, eventType, at);
  const slot = slotAt(input, choice.start_at);
  if (slot === undefined) throw slotUnavailable();
  await refuseTooManyBookings(trx, eventType, attendee.email, now, request.by);

  const booking = await insertBooking(trx, {
    id: deps.newId(),
    attendeeId: deps.newId(),
    eventType,
    slot,
    buffers: input,
    attendee: { name: attendee.name, email: attendee.email, timezone: choice.timezone },
    answers,
    revision: transitions.isCaptured({ scheduling_invitation_id: invitation?.id ?? null }) ? 1 : 0,
    location: invitation ?? eventType,
    invitationId: invitation?.id ?? null,
    now,
  });
  const manageToken = await issueManageToken(trx, booking.id, now);
  if (invitation !== undefined) {
    const moved = await moveInvitation(deps.hooks, trx, invitation, {
      to: "booked",
      at: now,
      actor,
      bookingId: booking.id,
      startAt: booking.start_at,
      endAt: booking.end_at,
      hostId: booking.host_id,
    });
    if (moved === undefined) throw new ProblemError("gone", "This invitation cannot be used any more.");
  }
  const made: Transition = { type: "booking.created", booking, actor };
  await transitions.record(trx, made);
  return { ...made, manageToken };
}

async function usable(
  trx: AppTransaction,
  { dialect }: BookingDeps,
  invitation: Invitation | undefined,
): Promise<Invitation | undefined> {
  if (invitation === undefined) return undefined;
  const now = await lockInvitation(trx, dialect, invitation.id);
  if (now === undefined) throw new ProblemError("gone", "This invitation cannot be used any more.");
  return now;
}

/** @throws ProblemError 410 for an invitation, 404 for an event type that is not offered any more */
function refuseUnusable(
  invitation: Invitation | undefined,
  eventType: EventType | undefined,
  slug: string,
  now: Date,
): asserts eventType is EventType {
  const reason = invitation && whyUnusable(invitation, eventType, now);
  if (reason !== undefined) throw new ProblemError("gone", reason);
  if (eventType === undefined || !isBookable(eventType)) throw notFound("event type", slug);
}

/** @throws ProblemError 400 */
function readChoice(
  questions: Parameters<typeof readAnswers>[0],
  { answers: given }: BookingChoice,
): readonly Answer[] {
  const { answers, problems } = readAnswers(questions, given);
  if (problems.length > 0) throw invalid(problems);
  return answers;
}
