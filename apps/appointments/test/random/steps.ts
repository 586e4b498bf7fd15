import type { Client } from "../support/client.ts";
import type { Dice } from "./dice.ts";
import type { Stage } from "./stage.ts";

const day = 86_400_000;

/** A booking as the table has it, and what the people in this seed know of it. */
export interface KnownBooking {
  readonly id: string;
  readonly hostId: string;
  readonly isOrdinary: boolean;
  readonly status: string;
  readonly startAt: string;
  /** Absent when the answer that would have told it was lost. */
  readonly manage?: string;
}

export interface KnownInvitation {
  readonly id: string;
  readonly status: string;
  readonly expiresAt: string;
  /** Absent when the answer that would have told it was lost. */
  readonly token?: string;
}

/** One seed's part of the stage. */
export interface Scene {
  readonly stage: Stage;
  readonly dice: Dice;
  /** Its first moment, in epoch ms. Appointments are from the 8th to the 12th day after it. */
  readonly begin: number;
  readonly bookings: readonly KnownBooking[];
  readonly invitations: readonly KnownInvitation[];
  /** Notes a secret that an answer told. */
  learn(
    secret:
      | { readonly manage: string; readonly of: string }
      | { readonly token: string; readonly of: string },
  ): void;
  unique(): string;
}

/** Answers the status of what was asked, 200 for what is not a request. */
export type EntryPoint = (scene: Scene) => Promise<number>;

function someStart({ dice, begin }: Scene): string {
  const midnight = Math.floor(begin / day) * day + (8 + dice.int(5)) * day;
  return new Date(midnight + (9 * 60 + dice.int(16) * 30) * 60_000).toISOString();
}

const confirmed = (scene: Scene): KnownBooking[] =>
  scene.bookings.filter(({ status }) => status === "confirmed");
const active = (scene: Scene): KnownInvitation[] =>
  scene.invitations.filter(({ status }) => status === "active");
const usable = (scene: Scene): KnownInvitation[] => active(scene).filter(({ token }) => token !== undefined);
const managed = (scene: Scene): KnownBooking[] =>
  confirmed(scene).filter(({ manage }) => manage !== undefined);

function host({ stage }: Scene, { hostId }: KnownBooking): Client {
  return stage.client(stage.hosts.find(({ id }) => id === hostId)!.key);
}

async function tokenBook(scene: Scene, invitation: KnownInvitation): Promise<number> {
  const body = { start_at: someStart(scene), timezone: "Europe/Lisbon", answers: [] };
  const answer = await scene.stage.client().post(`/v1/schedule/${invitation.token}/book`, body);
  if (answer.status === 201)
    scene.learn({ manage: `/manage/${answer.body.manage_token}`, of: answer.body.id });
  return answer.status;
}

async function customerMove(scene: Scene, booking: KnownBooking): Promise<number> {
  const body = { start_at: someStart(scene) };
  return (await scene.stage.client().post(`${booking.manage}/reschedule`, body)).status;
}

async function staffMove(scene: Scene, client: Client, booking: KnownBooking): Promise<number> {
  return (await client.patch(`/v1/bookings/${booking.id}/reschedule`, { start_at: someStart(scene) })).status;
}

async function customerCancel(scene: Scene, booking: KnownBooking): Promise<number> {
  return (await scene.stage.client().post(`${booking.manage}/cancel`, { reason: "Something came up" }))
    .status;
}

async function staffCancel(client: Client, booking: KnownBooking): Promise<number> {
  return (await client.post(`/v1/bookings/${booking.id}/cancel`)).status;
}

/** Every way into a transition of a booking or an invitation. */
export const entryPoints = {
  async "issue an invitation"(scene) {
    const { stage, dice } = scene;
    const expiresAt = dice.chance(0.3) ? scene.begin + (1 + dice.int(6)) * day : scene.begin + 19 * day;
    const { status, body } = await stage.client(stage.creator.key).post("/v1/scheduling-invitations", {
      event_type_id: dice.chance(0.7) ? stage.teamTypeId : stage.soloTypeId,
      recipient: { name: "Grace Hopper", email: `${scene.unique()}@example.com` },
      expires_at: new Date(expiresAt).toISOString(),
      external: { system: "crm", reference: scene.unique(), url: null },
    });
    if (status === 201) scene.learn({ token: body.token, of: body.id });
    return status;
  },
  "book with an invitation's token": (scene) => tokenBook(scene, scene.dice.pick(usable(scene))),
  async "book by staff, without an invitation"(scene) {
    const { stage, dice } = scene;
    const { status, body } = await stage
      .client(dice.pick([...stage.hosts, stage.creator]).key)
      .post("/v1/bookings", {
        event_type_slug: stage.ordinarySlug,
        start_at: someStart(scene),
        timezone: "Asia/Tokyo",
        name: "Alan Turing",
        email: `${scene.unique()}@example.com`,
      });
    if (status === 201) scene.learn({ manage: `/manage/${body.manage_token}`, of: body.id });
    return status;
  },
  "reschedule with the manage token": (scene) => customerMove(scene, scene.dice.pick(managed(scene))),
  "reschedule by the host (PATCH)"(scene) {
    const booking = scene.dice.pick(confirmed(scene));
    return staffMove(scene, host(scene, booking), booking);
  },
  "reschedule by an admin (PATCH)": (scene) =>
    staffMove(scene, scene.stage.client(scene.stage.world.key), scene.dice.pick(confirmed(scene))),
  async "reassign by an admin"(scene) {
    const { stage, dice } = scene;
    const booking = dice.pick(confirmed(scene).filter(({ isOrdinary }) => isOrdinary));
    const to = dice.pick(stage.hosts.filter(({ id }) => id !== booking.hostId));
    const path = `/v1/bookings/${booking.id}/reassign`;
    return (await stage.client(stage.world.key).post(path, { host_id: to.id })).status;
  },
  "cancel with the manage token": (scene) => customerCancel(scene, scene.dice.pick(managed(scene))),
  "cancel by the host"(scene) {
    const booking = scene.dice.pick(confirmed(scene));
    return staffCancel(host(scene, booking), booking);
  },
  "cancel by an admin": (scene) =>
    staffCancel(scene.stage.client(scene.stage.world.key), scene.dice.pick(confirmed(scene))),
  async "cancel an invitation"(scene) {
    const { id } = scene.dice.pick(active(scene));
    const client = scene.stage.client(scene.stage.creator.key);
    return (await client.post(`/v1/scheduling-invitations/${id}/cancel`)).status;
  },
  async "sweep expired invitations"(scene) {
    const { world, life } = scene.stage;
    const soonest = Math.min(...active(scene).map(({ expiresAt }) => Date.parse(expiresAt)));
    const left = soonest - world.clock.now().getTime();
    if (left > 0) world.clock.advance(left);
    await life.sweep();
    return 200;
  },
} satisfies Record<string, EntryPoint>;

export type EntryPointName = keyof typeof entryPoints;

/** Two people at once; each with the entry point that its success is counted for. */
export const races = {
  async "two submits of one token"(scene: Scene): Promise<(readonly [EntryPointName, number])[]> {
    const invitation = scene.dice.pick(usable(scene));
    const statuses = await Promise.all([tokenBook(scene, invitation), tokenBook(scene, invitation)]);
    return statuses.map((status) => ["book with an invitation's token", status]);
  },
  async "two cancels"(scene: Scene): Promise<(readonly [EntryPointName, number])[]> {
    const booking = scene.dice.pick(managed(scene));
    const statuses = await Promise.all([
      customerCancel(scene, booking),
      staffCancel(host(scene, booking), booking),
    ]);
    return [
      ["cancel with the manage token", statuses[0]],
      ["cancel by the host", statuses[1]],
    ];
  },
  async "a move and a cancel"(scene: Scene): Promise<(readonly [EntryPointName, number])[]> {
    const booking = scene.dice.pick(managed(scene));
    const admin = scene.stage.client(scene.stage.world.key);
    const statuses = await Promise.all([customerMove(scene, booking), staffCancel(admin, booking)]);
    return [
      ["reschedule with the manage token", statuses[0]],
      ["cancel by an admin", statuses[1]],
    ];
  },
};
export type RaceName = keyof typeof races;

/** What can be done now, with how often it should be. */
export function possible(scene: Scene): (readonly [number, EntryPointName])[] {
  const hasConfirmed = confirmed(scene).length > 0;
  const hasManaged = managed(scene).length > 0;
  const hasOrdinary = confirmed(scene).some(({ isOrdinary }) => isOrdinary);
  const when = (is: boolean, weight: number): number => (is ? weight : 0);
  // One that was booked can be booked once; the last day of it comes before the first appointment.
  const canExpire = active(scene).some(({ expiresAt }) => Date.parse(expiresAt) < scene.begin + 7 * day);
  const all: (readonly [number, EntryPointName])[] = [
    [when(scene.invitations.length < 5, 1.5), "issue an invitation"],
    [when(usable(scene).length > 0, 4), "book with an invitation's token"],
    [1, "book by staff, without an invitation"],
    [when(hasManaged, 2), "reschedule with the manage token"],
    [when(hasConfirmed, 1.2), "reschedule by the host (PATCH)"],
    [when(hasConfirmed, 1), "reschedule by an admin (PATCH)"],
    [when(hasOrdinary, 1.5), "reassign by an admin"],
    [when(hasManaged, 0.7), "cancel with the manage token"],
    [when(hasConfirmed, 0.6), "cancel by the host"],
    [when(hasConfirmed, 0.6), "cancel by an admin"],
    [when(active(scene).length > 0, 0.4), "cancel an invitation"],
    [when(canExpire, 0.8), "sweep expired invitations"],
  ];
  return all.filter(([weight]) => weight > 0);
}

export function possibleRaces(scene: Scene): (readonly [number, RaceName])[] {
  const all: (readonly [number, RaceName])[] = [
    [usable(scene).length, "two submits of one token"],
    [managed(scene).length, "two cancels"],
    [managed(scene).length, "a move and a cancel"],
  ];
  return all.filter(([weight]) => weight > 0);
}
