import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { EncryptionKeyError } from "../model/errors.ts";

/** How the key that seals stands in a database. */
export type KeyStanding =
  | { readonly kind: "unknown" }
  | { readonly kind: "latest" }
  | { readonly kind: "superseded"; readonly latest: string };

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const keyIdPattern = /^[A-Za-z0-9_-]{1,32}$/;
const base64Pattern = /^[A-Za-z0-9+/]{43}=$/;
const setting = "HOOKWELL_ENCRYPTION_KEYS";

/** A new encryption key: base64 of 32 random bytes. */
export function generateKey(): string {
  return randomBytes(keyBytes).toString("base64");
}

/**
 * The AES-256-GCM keys that seal secrets and custom headers. The newest seals, all of them open. Sealed text is
 * `<key id>:<base64 of nonce, ciphertext and tag>`.
 */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, KeyObject>;
  /** Id of the key that seals. */
  readonly newestId: string;

  private constructor(keys: ReadonlyMap<string, KeyObject>) {
    this.#keys = keys;
    this.newestId = keys.keys().next().value!;
  }

  /**
   * Reads `k2:<base64 of 32 bytes>,k1:…`, newest first.
   * @throws EncryptionKeyError naming the entry that is wrong, never its key
   */
  static parse(text: string): KeyRing {
    const keys = new Map<string, KeyObject>();
    const entries = text.split(",").map((entry) => entry.trim());
    for (const [index, entry] of entries.entries()) {
      const colon = entry.indexOf(":");
      const id = entry.slice(0, Math.max(colon, 0));
      const where = `Entry ${index + 1} of the encryption keys (${setting})`;
      if (!keyIdPattern.test(id))
        throw new EncryptionKeyError(
          `${where} has no key id; write it as k1:<base64 of 32 bytes>, newest first, joined by commas. \`hookwell keys generate\` makes one.`,
        );
      if (!base64Pattern.test(entry.slice(colon + 1)))
        throw new EncryptionKeyError(
          `${where}, ${id}, is not the base64 of 32 bytes (44 characters); make one with \`hookwell keys generate\`.`,
        );
      if (keys.has(id))
        throw new EncryptionKeyError(`${where} repeats the key id ${id}; give each key an id of its own.`);
      // As an object, which a cipher takes in a quarter of the time that bytes take.
      keys.set(id, createSecretKey(entry.slice(colon + 1), "base64"));
    }
    return new KeyRing(keys);
  }

  /** Seals a text with the newest key. It opens only with the same `associatedData`, which ties it to its row. */
  seal(text: string, associatedData: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#keys.get(this.newestId)!, nonce, {
      authTagLength: tagBytes,
    });
    cipher.setAAD(Buffer.from(associatedData, "utf8"));
    const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `${this.newestId}:${sealed.toString("base64")}`;
  }

  /** True for a text sealed with a key that is not in the ring: it may be whole, and another process may open it. */
  lacksKeyOf(sealed: string): boolean {
    const id = keyIdOf(sealed);
    return id !== "" && !this.#keys.has(id);
  }

  /** @throws EncryptionKeyError when its key is not in the ring, or the text was not sealed by it for this row */
  open(sealed: string, associatedData: string): string {
    const id = keyIdOf(sealed);
    const key = this.#keys.get(id);
    if (!key) throw this.#missing(id);
    const bytes = Buffer.from(sealed.slice(id.length + 1), "base64");
    try {
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      });
      decipher.setAAD(Buffer.from(associatedData, "utf8"));
      decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
      const text = decipher.update(bytes.subarray(nonceBytes, bytes.length - tagBytes));
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    } catch {
      throw new EncryptionKeyError(
        `Encryption key ${id} does not open ${associatedData}: it is another key under the same id, or the stored text was changed. Give the key that sealed it (${setting}).`,
      );
    }
  }

  /**
   * Seals a text anew with the newest key. One that its key does not open was damaged: nobody can read it, so it only
   * goes under the newest key's name, where it is damaged as before and needs no older key to be known as that.
   * @throws EncryptionKeyError when its key is not in the ring
   */
  reseal(sealed: string, associatedData: string): { readonly sealed: string; readonly damaged: boolean } {
    const id = keyIdOf(sealed);
    if (this.lacksKeyOf(sealed)) throw this.#missing(id);
    try {
      return { sealed: this.seal(this.open(sealed, associatedData), associatedData), damaged: false };
    } catch {
      const rest = id === "" ? sealed : sealed.slice(id.length + 1);
      return { sealed: `${this.newestId}:${rest}`, damaged: true };
    }
  }

  /**
   * Compares the ring with what a database knows of its keys (rows of `meta`, see {@link keyRecords}) and answers the
   * rows to write so that the newest key is known there too.
   * @throws EncryptionKeyError when a key that sealed something is missing or is not the same key, or the newest one
   * was retired
   */
  verify(records: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    if (records.has(keyRecords.retired(this.newestId))) throw this.#retired(records.get(keyRecords.latest));
    for (const [name, sealed] of records) {
      if (!name.startsWith(keyRecords.check(""))) continue;
      const id = name.slice(keyRecords.check("").length);
      if (!this.#keys.has(id)) throw this.#missing(id);
      if (!sealed.startsWith(`${id}:`) || this.open(sealed, name) !== checkText)
        throw new EncryptionKeyError(`The check value of encryption key ${id} was changed in the database.`);
    }
    const newest = keyRecords.check(this.newestId);
    if (records.has(newest)) return new Map();
    return new Map([
      [newest, this.seal(checkText, newest)],
      [keyRecords.latest, this.newestId],
    ]);
  }

  /** The keys besides the newest that a database asks for. */
  others(records: ReadonlyMap<string, string>): string[] {
    const prefix = keyRecords.check("");
    return [...records.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length))
      .filter((id) => id !== this.newestId)
      .sort();
  }

  /** What the database knows of the newest key: nothing yet, that it came last, or which one came after it. */
  standing(records: ReadonlyMap<string, string>): KeyStanding {
    if (!records.has(keyRecords.check(this.newestId))) return { kind: "unknown" };
    const latest = records.get(keyRecords.latest) ?? this.newestId;
    return latest === this.newestId ? { kind: "latest" } : { kind: "superseded", latest };
  }

  #retired(latest: string | undefined): EncryptionKeyError {
    return new EncryptionKeyError(
      `Encryption key ${this.newestId} was retired by \`hookwell rotate-key\`; ${latest === undefined ? "give the key that came after it" : `give ${latest}`} as the first one (${setting}). A new key needs an id of its own.`,
    );
  }

  #missing(id: string): EncryptionKeyError {
    return new EncryptionKeyError(
      `The database has secrets sealed with encryption key ${JSON.stringify(id)}, and the given keys are ${[...this.#keys.keys()].join(", ")}; add ${JSON.stringify(id)} behind the newest one (${setting}).`,
    );
  }
}

/** Id of the key that sealed a text; "" for what was never a sealed text. */
function keyIdOf(sealed: string): string {
  return sealed.slice(0, Math.max(sealed.indexOf(":"), 0));
}

const checkText = "hookwell";

/** Names of the `meta` rows in which a database knows its keys. */
export const keyRecords = {
  /** Sealed by the key: whoever opens the database must have it, and the same one. */
  check: (keyId: string): string => `key_check:${keyId}`,
  /** The key sealed something once and nothing any more. Its id is not used again. */
  retired: (keyId: string): string => `key_retired:${keyId}`,
  /** Id of the key that came last. */
  latest: "key_latest",
};
