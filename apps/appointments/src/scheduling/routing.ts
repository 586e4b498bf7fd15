import type { HostRole, RoutingMode } from "../database/scheduling-tables.ts";

/** A host as the choice at one moment sees it. */
export interface HostCandidate {
  readonly userId: string;
  readonly role: HostRole;
  readonly isFree: boolean;
  /** Confirmed bookings that are still to come. */
  readonly upcomingBookings: number;
}

/**
 * The hosts of an appointment, the primary first and the others in their order, or undefined when it cannot be held.
 * Candidates are in their order (priority, then position), and only users that are active.
 *
 * - fixed: the first host
 * - collective: all of them; the first is the primary
 * - priority: the first that is free
 * - round_robin: every required host, and the free rotation host with the fewest upcoming bookings, who is the
 *   primary; without rotation hosts the first required one is
 *
 * Optional hosts are never chosen; they join when they are free.
 */
export function assignHosts(
  mode: RoutingMode,
  candidates: readonly HostCandidate[],
): readonly string[] | undefined {
  const needed = chosen(
    mode,
    candidates.filter((candidate) => candidate.role !== "optional"),
  );
  const primary = needed?.[0];
  if (needed === undefined || primary === undefined) return undefined;
  const others = candidates.filter(
    (candidate) =>
      candidate !== primary &&
      (needed.includes(candidate) || (candidate.role === "optional" && candidate.isFree)),
  );
  return [primary, ...others].map((candidate) => candidate.userId);
}

/** Hosts whose working periods begin the grid of starts: those who may be the ones that it takes. */
export function gridHosts<Host extends { readonly role: HostRole }>(
  mode: RoutingMode,
  hosts: readonly Host[],
): readonly Host[] {
  const able = hosts.filter((host) => host.role !== "optional");
  return mode === "fixed" ? able.slice(0, 1) : able;
}

/** The primary first. */
function chosen(mode: RoutingMode, able: readonly HostCandidate[]): readonly HostCandidate[] | undefined {
  switch (mode) {
    case "fixed":
      return allFree(able.slice(0, 1));
    case "collective":
      return allFree(able);
    case "priority":
      return allFree(able.filter((candidate) => candidate.isFree).slice(0, 1));
    case "round_robin": {
      const required = able.filter((candidate) => candidate.role === "required");
      const rotation = able.filter((candidate) => candidate.role === "rotation");
      if (rotation.length === 0) return allFree(required);
      const [first, ...rest] = rotation.filter((candidate) => candidate.isFree);
      if (first === undefined) return undefined;
      const next = rest.reduce(
        (best, candidate) => (candidate.upcomingBookings < best.upcomingBookings ? candidate : best),
        first,
      );
      return allFree([next, ...required]);
    }
  }
}

function allFree(candidates: readonly HostCandidate[]): readonly HostCandidate[] | undefined {
  return candidates.length > 0 && candidates.every((candidate) => candidate.isFree) ? candidates : undefined;
}
