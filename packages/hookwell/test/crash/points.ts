/** What a process may be in the middle of when it is killed. */
export type CrashStep = "capture" | "dispatch" | "claim" | "send" | "record" | "prune" | "replay" | "migrate";
/** Just before it takes effect (its commit; of a send, the request), or just after, before anybody has heard of it. */
export type CrashMoment = "before" | "after";

/** A place in which processes are killed: the only list of them, for the tests and for `npm run crash`. */
export interface CrashPoint {
  readonly step: CrashStep;
  readonly moment: CrashMoment;
  /** What is so at this point. */
  readonly means: string;
  /**
   * A death here may leave sends that nobody recorded, and they are made again: those of the life itself, or of rows
   * that lives before it left.
   */
  readonly repeats?: true;
}

export const crashPoints: readonly CrashPoint[] = [
  { step: "capture", moment: "before", means: "change and event written, not committed" },
  { step: "capture", moment: "after", means: "committed, nobody told" },
  { step: "dispatch", moment: "before", means: "deliveries written, not committed", repeats: true },
  { step: "dispatch", moment: "after", means: "deliveries committed", repeats: true },
  { step: "claim", moment: "before", means: "about to take rows", repeats: true },
  { step: "claim", moment: "after", means: "rows leased", repeats: true },
  { step: "send", moment: "before", means: "about to send", repeats: true },
  { step: "send", moment: "after", means: "answered, not recorded", repeats: true },
  { step: "record", moment: "before", means: "outcome written, not committed", repeats: true },
  // One outcome is committed; that of another send may not be.
  { step: "record", moment: "after", means: "outcome committed", repeats: true },
  { step: "prune", moment: "before", means: "a step of pruning not committed" },
  { step: "prune", moment: "after", means: "a step of pruning committed" },
  // Replays are taken on while others are sent.
  { step: "replay", moment: "before", means: "a step of a replay not committed", repeats: true },
  { step: "replay", moment: "after", means: "a step of a replay committed", repeats: true },
  { step: "migrate", moment: "before", means: "amid the steps of the schema" },
  { step: "migrate", moment: "after", means: "schema committed" },
];

export const nameOf = ({ step, moment }: Pick<CrashPoint, "step" | "moment">): string => `${step}, ${moment}`;

/** What a child process is told, as JSON in CRASH_ORDER. */
export interface CrashOrder {
  readonly store: "sqlite" | "postgres";
  /** File path or postgres:// url. */
  readonly address: string;
  /** PostgreSQL: where the tables are. */
  readonly schema: string;
  readonly encryptionKeys: string;
  readonly step: CrashStep;
  readonly moment: CrashMoment;
  /** It stops when it is there for the nth time. */
  readonly nth: number;
  /** Beginning of the ids of the rows it makes, and of their events. */
  readonly thing: string;
  readonly clockOffsetMs: number;
}

/** What a process that takes a replay on, and does nothing else, is told. */
export interface ReplayOrder {
  readonly store: "sqlite" | "postgres";
  readonly address: string;
  readonly encryptionKeys: string;
  /** After so many of them it is killed. */
  readonly statements: number;
}

/** What the child writes when it is there; then it stands still. */
export const reached = "POINT\n";
