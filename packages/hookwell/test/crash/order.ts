/** What a process that takes replays on is told. */
export interface ReplayOrder {
  readonly store: "sqlite" | "postgres";
  readonly address: string;
  /** After so many it is killed. */
  readonly statements: number;
  readonly encryptionKeys: string;
}
