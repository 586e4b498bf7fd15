import { EncryptionKeyError, StorageError } from "../model/errors.ts";
import type { Timers } from "../model/timers.ts";
import type { KeyStanding } from "./sealing.ts";

/** Sealed texts by the id of the key that sealed them. */
export interface SealedCounts {
  /** The key that seals now, and how it stands in the database; absent where there is none. */
  readonly newest?: {
    readonly id: string;
    readonly standing: KeyStanding;
    /** The other keys that whoever opens the database must have. */
    readonly others: readonly string[];
  };
  readonly byKey: ReadonlyMap<string, number>;
}

export interface ResealResult {
  readonly resealed: number;
  /** Names of those among them that no key opens. */
  readonly damaged: readonly string[];
  /** Where to go on; absent at the end. */
  readonly cursor?: string;
}

/** Sealing everything with another key: part of the store contract. */
export interface KeyRotationStore {
  /**
   * Reads every sealed text: for people who ask, never for a hot path. Writes nothing.
   * @throws EncryptionKeyError as opening with keys does
   */
  countSealed(): Promise<SealedCounts>;
  /**
   * Seals texts anew with the newest key: the next ones after the cursor that another key sealed, at most `limit`. Those
   * that somebody holds or changes meanwhile are left as they are. Contents stay, so nothing else sees a difference.
   * @throws EncryptionKeyError when the key of one is not given
   */
  reseal(limit: number, cursor?: string): Promise<ResealResult>;
  /**
   * Ends every key but the newest: they are needed no more, and nothing can be sealed with them again. Waits for
   * transactions that are sealing with them. Undefined = there is still something that one of them sealed.
   */
  retireKeys(): Promise<readonly string[] | undefined>;
}

export interface KeyRotationOptions {
  readonly timers: Timers;
  /** Texts for each write. Default 200. */
  readonly batch?: number;
  /** Called between two writes; one that throws ends the work there. What was done is kept. */
  readonly onProgress?: (done: number, total: number) => void;
}

export interface KeyRotation {
  readonly newest: string | undefined;
  readonly resealed: number;
  readonly damaged: readonly string[];
  /** Keys that may now be taken away. */
  readonly retired: readonly string[];
}

const quietRounds = 50;
const pauseMs = 200;

/**
 * Seals everything with the newest key and retires the others. Broken off anywhere it can be run again: what is sealed
 * with the newest key is not looked at twice.
 * @throws EncryptionKeyError when a key is missing, or the list does not begin with the key that came last
 */
export async function rotateKeys(
  store: KeyRotationStore,
  { timers, batch = 200, onProgress = () => {} }: KeyRotationOptions,
): Promise<KeyRotation> {
  const counts = await store.countSealed();
  demandLatest(counts);
  const newest = counts.newest?.id;
  let total = sealedWithOthers(counts);
  let resealed = 0;
  const damaged: string[] = [];
  for (let quiet = 0; quiet < quietRounds; quiet++) {
    let cursor: string | undefined;
    do {
      onProgress(resealed, Math.max(total, resealed));
      const result = await store.reseal(batch, cursor);
      if (result.resealed > 0) quiet = 0;
      resealed += result.resealed;
      damaged.push(...result.damaged);
      cursor = result.cursor;
    } while (cursor !== undefined);
    const retired = await store.retireKeys();
    onProgress(resealed, resealed);
    if (retired) return { newest, resealed, damaged, retired };
    // Held by others, or sealed with an old key meanwhile.
    await timers.sleep(pauseMs);
    total = resealed + sealedWithOthers(await store.countSealed());
  }
  throw new StorageError(
    `${total - resealed} texts are held by other transactions for long and are still sealed with an older key; run it again.`,
  );
}

/** How many texts another key than the newest sealed. */
export function sealedWithOthers({ newest, byKey }: SealedCounts): number {
  return [...byKey].reduce((sum, [key, count]) => (key === newest?.id ? sum : sum + count), 0);
}

/** The list of an old configuration must not undo what a newer one began. @throws EncryptionKeyError */
function demandLatest({ newest }: SealedCounts): void {
  if (newest?.standing.kind === "superseded")
    throw new EncryptionKeyError(
      `The given keys begin with ${newest.id}, and ${newest.standing.latest} came to this database after it; give the list that the running processes have (HOOKWELL_ENCRYPTION_KEYS).`,
    );
}
