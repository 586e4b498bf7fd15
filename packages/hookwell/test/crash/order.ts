/** Where a life ends: between the two named steps. "drain" ends by itself. */
export const crashPoints = [
  "write-commit",
  "commit-dispatch",
  "dispatch-claim",
  "claim-send",
  "send-record",
] as const;
export type CrashPoint = (typeof crashPoints)[number];

/** What a child process is told, as JSON in CRASH_ORDER. */
export interface CrashOrder {
  readonly store: "sqlite" | "postgres";
  /** File path or postgres:// url. */
  readonly address: string;
  readonly point: CrashPoint | "drain";
  /** Id of the row it makes, and of the event. */
  readonly thing: string;
  readonly clockOffsetMs: number;
  readonly encryptionKeys?: string;
}

/** What a process that takes replays on is told. */
export interface ReplayOrder {
  readonly store: "sqlite" | "postgres";
  readonly address: string;
  /** After so many it is killed. */
  readonly statements: number;
  readonly encryptionKeys: string;
}
