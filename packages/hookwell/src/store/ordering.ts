/** `due_at` of a delivery that waits for one before it: later than every instant. */
export const blockedAt = 9_000_000_000_000_000;

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
