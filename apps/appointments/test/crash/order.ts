import type { Place } from "./life.ts";

/** Where a life of the application is stopped, and killed. */
export const crashPoints = [
  "capture-commit",
  "commit-answer",
  "dispatch-commit",
  "dispatch-claim",
  "claim-send",
  "send-record",
] as const;
export type CrashPoint = (typeof crashPoints)[number];

export interface CrashRequest {
  readonly method: string;
  readonly path: string;
  readonly key?: string;
  readonly body?: unknown;
}

/** What a child process is told, as JSON in CRASH_ORDER. */
export interface CrashOrder {
  readonly place: Place;
  /** "end" = it does what it is told and ends by itself. */
  readonly point: CrashPoint | "end";
  /** Its time; it stands still. */
  readonly now: string;
  /** Sent to the application over HTTP. Absent = it dispatches and delivers instead. */
  readonly request?: CrashRequest;
}
