import type { Row } from "../../adapters/seam.ts";
import type { RateLimit } from "../../model/subscription.ts";
import type { LaneLimits, LaneState } from "../lane-state.ts";
import type { Connection } from "./connection.ts";
import { integer, optionalInteger, optionalJson, optionalText, text } from "./rows.ts";

/** The columns of a lane `l` that {@link toLane} reads. */
export const laneColumns = `l.subscription_id, l.hold_until, l.blocked_until, l.failures, l.failing_since, l.breaks,
  l.opened_at, l.probe_step, l.probe_at, l.probe_id, l.rate_limit, l.rate_tat, l.max_in_flight, l.slots,
  l.reported_at, l.unreported`;

export const readLaneText = `SELECT ${laneColumns} FROM hookwell_lane l WHERE l.subscription_id = ?`;

export interface LaneRow {
  readonly state: LaneState;
  readonly limits: LaneLimits;
}

export function toLane(row: Row): LaneRow {
  const failingSince = optionalInteger(row.failing_since);
  const since = optionalInteger(row.opened_at);
  const probeId = optionalText(row.probe_id);
  const reportedAt = optionalInteger(row.reported_at);
  const state: LaneState = {
    holdUntil: optionalInteger(row.hold_until) ?? 0,
    blockedUntil: optionalInteger(row.blocked_until) ?? 0,
    failures: integer(row.failures),
    breaks: integer(row.breaks),
    rateTat: integer(row.rate_tat),
    slots: JSON.parse(text(row.slots)) as Record<string, number>,
    unreported: integer(row.unreported),
    ...(reportedAt !== undefined && { reportedAt }),
    ...(failingSince !== undefined && { failingSince }),
    ...(since !== undefined && {
      open: {
        since,
        stepMs: integer(row.probe_step),
        probeAt: integer(row.probe_at),
        ...(probeId !== undefined && { probeId }),
      },
    }),
  };
  return {
    state,
    limits: {
      maxInFlight: optionalInteger(row.max_in_flight),
      rateLimit: optionalJson<RateLimit>(row.rate_limit),
    },
  };
}

export function readLane(connection: Connection, subscriptionId: string): LaneRow | undefined {
  const [row] = connection.all(readLaneText, [subscriptionId]);
  return row && toLane(row);
}

export const writeLaneText = `
UPDATE hookwell_lane SET blocked_until = ?, failures = ?, failing_since = ?, breaks = ?, opened_at = ?,
  probe_step = ?, probe_at = ?, probe_id = ?, rate_tat = ?, slots = ?, reported_at = ?,
  unreported = ?, ready = ?, next_due = ?
WHERE subscription_id = ?`;

/** Writes what the lane remembers; it is looked at as soon as it rests no more. */
export function writeLane(
  connection: Connection,
  subscriptionId: string,
  state: LaneState,
  now: number,
): void {
  const { open } = state;
  const rest = Math.max(state.holdUntil, state.blockedUntil);
  connection.all(writeLaneText, [
    state.blockedUntil,
    state.failures,
    state.failingSince ?? null,
    state.breaks,
    open?.since ?? null,
    open?.stepMs ?? null,
    open?.probeAt ?? null,
    open?.probeId ?? null,
    state.rateTat,
    JSON.stringify(state.slots),
    state.reportedAt ?? null,
    state.unreported,
    rest > now ? 0 : 1,
    rest > now ? rest : null,
    subscriptionId,
  ]);
}
