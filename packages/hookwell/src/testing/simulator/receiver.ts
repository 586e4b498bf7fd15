import { verify, verifyBodySignature } from "../../send/verify.ts";
import type { Journal } from "./journal.ts";
import type { Attempt, LinkState } from "./network.ts";
import type { Rng } from "./random.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** How a receiver behaves. */
export type Mood =
  | "well"
  | "failing"
  | "rejecting"
  | "throttling"
  | "slow"
  | "hanging"
  | "gone"
  | "redirecting";
export const moodFaults = [
  "failing",
  "rejecting",
  "throttling",
  "slow",
  "hanging",
  "gone",
  "redirecting",
] as const;

export interface Answer {
  readonly status: number;
  readonly afterMs: number;
  readonly retryAfterMs?: number;
}

/** A secret of the subscription, as far as its owner can tell when it is valid. */
interface KnownSecret {
  readonly secret: string;
  /** Not before this. */
  readonly from: number;
  /** Certainly from here on: the call that set it had been answered. */
  surelyFrom: number;
  /** Certainly until then, and not after `until`. */
  surelyUntil: number;
  until: number;
}

/** An attempt is signed with the secrets that were valid when it was claimed: so long before it began at most. */
const claimedBeforeMs = 16_000;
const always = Number.POSITIVE_INFINITY;

/** The service of one subscriber: it verifies what it gets as a real one would, and remembers all of it. */
export class Receiver {
  /** Key of its subscription in this world. */
  readonly name: string;
  readonly host: string;
  mood: Mood = "well";
  link: LinkState = "clean";
  /** Its requests never take long. */
  near = false;
  readonly firstSecret: string;
  readonly #secrets: KnownSecret[];
  /** Requests whose signatures were not right. */
  readonly forged: string[] = [];
  /** Told of exchanges that end badly, before anybody else is: Hookwell may disable the subscription. */
  onFailure: (result: number | string) => void = () => {};
  readonly #time: VirtualTime;
  readonly #rng: Rng;
  readonly #journal: Journal;

  constructor(name: string, secret: string, time: VirtualTime, rng: Rng, journal: Journal) {
    this.name = name;
    this.host = `${name}.example`;
    this.firstSecret = secret;
    this.#secrets = [{ secret, from: 0, surelyFrom: 0, surelyUntil: always, until: always }];
    this.#time = time;
    this.#rng = rng;
    this.#journal = journal;
  }

  receive(attempt: Attempt): Answer {
    attempt.arrivedAt = this.#time.now;
    this.#check(attempt);
    const answer = this.#answer();
    attempt.status = answer.status;
    if (this.mood !== "well") this.#journal.count("fault", `receiver: ${this.mood}`);
    this.#journal.note(
      this.name,
      `gets ${attempt.headers.get("x-hookwell-delivery")}, answers ${answer.status}`,
    );
    return answer;
  }

  /** A rotation was asked for: it may happen from now on. */
  rotating(secret: string, overlapMs: number): void {
    const { now } = this.#time;
    for (const known of this.#secrets) known.surelyUntil = Math.min(known.surelyUntil, now + overlapMs);
    this.#secrets.push({ secret, from: now, surelyFrom: always, surelyUntil: always, until: always });
  }

  /** It was answered. */
  rotated(secret: string, overlapMs: number): void {
    const { now } = this.#time;
    for (const known of this.#secrets)
      if (known.secret === secret) known.surelyFrom = now;
      else known.until = Math.min(known.until, now + overlapMs);
  }

  get hasRotated(): boolean {
    return this.#secrets.length > 1;
  }

  /** With each secret that is surely valid, for whoever verifies with that one alone, and with all that may be. */
  #check({ headers, body, begunAt }: Attempt): void {
    const claimed = begunAt - claimedBeforeMs;
    const now = new Date(this.#time.now);
    const possible = this.#secrets
      .filter(({ from, until }) => from <= begunAt && until >= claimed)
      .map(({ secret }) => secret);
    const signature = headers.get("x-hookwell-signature");
    try {
      verify(headers, body, possible, { now });
      if (!possible.some((secret) => verifyBodySignature(body, signature, secret)))
        throw new Error("its body signature was made with no valid secret");
      if (possible.length === 1) return;
      for (const { secret, surelyFrom, surelyUntil } of this.#secrets)
        if (surelyFrom <= claimed && surelyUntil > begunAt) verify(headers, body, secret, { now });
    } catch (error) {
      this.#journal.note(this.name, `cannot verify ${headers.get("x-hookwell-delivery")}`);
      this.forged.push(`${headers.get("webhook-id")}: ${error instanceof Error ? error.message : error}`);
    }
  }

  #answer(): Answer {
    const rng = this.#rng;
    const soon = rng.int(1, 10);
    switch (this.mood) {
      case "well":
        return { status: rng.pick([200, 201, 204]), afterMs: soon };
      case "failing":
        return { status: rng.pick([500, 502, 503]), afterMs: soon };
      case "rejecting":
        return { status: rng.pick([400, 401, 404]), afterMs: soon };
      case "throttling":
        return { status: 429, afterMs: soon, retryAfterMs: 1_000 * rng.int(1, 6) };
      case "redirecting":
        return { status: 302, afterMs: soon };
      case "gone":
        return { status: 410, afterMs: soon };
      case "slow":
        return { status: 200, afterMs: rng.int(2_000, 14_000) };
      case "hanging":
        // Carried out, but the answer comes when nobody waits for it any more.
        return { status: 200, afterMs: 60_000 };
    }
  }
}
