import { createHash, randomBytes } from "node:crypto";

const tokenShape = /^[0-9a-f]{64}$/;

/** A new token: 32 random bytes as 64 hex digits. It is shown once; only its hash is stored. */
export function newInvitationToken(): string {
  return randomBytes(32).toString("hex");
}

/** What is stored of a token: its SHA-256, in hex. */
export function hashInvitationToken(token: string): string {
  return createHash("sha256").update(token, "utf8").digest("hex");
}

/** Whether a text can be a token at all; what cannot is unknown without a look at the database. */
export function isInvitationToken(text: string): boolean {
  return tokenShape.test(text);
}
