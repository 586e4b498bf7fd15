/** `due_at` of a delivery that waits for one before it: later than every instant. */
export const blockedAt = 9_000_000_000_000_000;

/**
 * Added to `due_at` of what a replay queued and is to be sent at `due_at`: in the order of its lane it comes after
 * everything live, and needs no index of its own.
 */
export const behindLive = 4_000_000_000_000_000;

/** Where a row stands in the order of its lane while it waits until `at`. */
export function placeAt(at: number, replayId: string | undefined): number {
  return replayId === undefined ? at : at + behindLive;
}

/** When a row may be sent, from its `due_at`: never while it waits for another. */
export function dueTime(dueAt: number): number {
  return dueAt === blockedAt ? blockedAt : dueAt % behindLive;
}

/**
 * Which deliveries of an ordered subscription go one after the other: those of one subject. Events with a revision
 * ("r") are ordered by it; those without ("c") by capture, among themselves.
 */
export function orderKey({
  tenantId = "",
  subject,
  revision,
}: {
  readonly tenantId?: string | undefined;
  readonly subject?: string | undefined;
  readonly revision?: number | undefined;
}): string | undefined {
  if (subject === undefined) return undefined;
  return [tenantId, subject, revision === undefined ? "c" : "r"].join("\u001f");
}

/** True when a lower revision must not be sent any more after a higher one was. */
export function isRevised(key: string): boolean {
  return key.endsWith("\u001fr");
}
