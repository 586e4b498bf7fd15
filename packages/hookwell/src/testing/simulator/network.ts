import type { Delivery } from "../../model/delivery.ts";
import {
  DeliveryError,
  SendAbortedError,
  type Sender,
  type SendOptions,
  type SendReceipt,
} from "../../send/sender.ts";
import { WireHeaders } from "../../send/wire.ts";
import type { Journal } from "./journal.ts";
import { never, type SimProcess } from "./process.ts";
import type { Rng } from "./random.ts";
import type { Answer, Receiver } from "./receiver.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Bound of one exchange, as the worker knows it, in ms. */
export const exchangeMs = 15_000;
const connectMs = 5_000;

/** One request as it went over the wire, and what both ends know of it. */
export interface Attempt {
  readonly process: SimProcess;
  readonly receiver: Receiver;
  readonly url: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly begunAt: number;
  arrivedAt?: number;
  /** What the receiver answered. */
  status?: number;
  answeredAt?: number;
  /** When it was over on the wire. */
  overAt?: number;
  /** When and how the exchange ended for the process that made it; absent when it died first. */
  end?: { readonly at: number; readonly result: number | string };
}

/** What may be wrong with the way to a receiver. `lossy`: each message is lost, or the connection reset, at random. */
export type LinkState =
  | "clean"
  | "partitioned"
  | "refusing"
  | "losing requests"
  | "losing answers"
  | "resetting"
  | "slow bodies";
export const linkFaults = [
  "partitioned",
  "refusing",
  "losing requests",
  "losing answers",
  "resetting",
  "slow bodies",
] as const;

/** What became of one exchange, and how many ms after its beginning its sender learns of it. */
interface Ending {
  readonly afterMs: number;
  readonly result: Answer | string;
}

/** Carries requests to receivers and answers back, as badly as it is told to. */
export class Network {
  readonly attempts: Attempt[] = [];
  readonly #time: VirtualTime;
  readonly #rng: Rng;
  readonly #journal: Journal;
  readonly #receivers = new Map<string, Receiver>();
  readonly #wire = new WireHeaders();

  constructor(time: VirtualTime, rng: Rng, journal: Journal) {
    this.#time = time;
    this.#rng = rng;
    this.#journal = journal;
  }

  connect(receiver: Receiver): void {
    this.#receivers.set(receiver.host, receiver);
  }

  /** How one process sends. */
  sender(process: SimProcess): Sender {
    return { deliver: (delivery, options) => this.#deliver(process, delivery, options) };
  }

  #deliver(process: SimProcess, delivery: Delivery, { signal }: SendOptions = {}): Promise<SendReceipt> {
    if (!process.alive) return never();
    if (signal?.aborted) return Promise.reject(new SendAbortedError(delivery.id));
    const attempt = this.#begin(process, delivery);
    const startedAt = new Date(this.#time.now);
    return new Promise((resolve, reject) => {
      const end = (result: Answer | string): void => {
        if (attempt.end || process.reaches("send: answered")) return;
        const durationMs = this.#time.now - attempt.begunAt;
        attempt.end = { at: this.#time.now, result: typeof result === "string" ? result : result.status };
        this.#journal.note(process.name, `sees ${attempt.end.result} for`, delivery.id);
        const details = { startedAt, durationMs };
        if (typeof result === "string") reject(new DeliveryError(result, `simulated: ${result}`, details));
        else if (result.status < 300) resolve({ ...details, statusCode: result.status });
        else {
          const { status, retryAfterMs } = result;
          reject(
            new DeliveryError(`http_${status}`, `simulated: ${status}`, {
              ...details,
              statusCode: status,
              ...(retryAfterMs !== undefined && { retryAfterMs }),
            }),
          );
        }
      };
      const abort = (): void => {
        if (attempt.end) return;
        attempt.end = { at: this.#time.now, result: "aborted" };
        reject(new SendAbortedError(delivery.id));
      };
      signal?.addEventListener("abort", abort, { once: true });
      const learn = ({ afterMs, result }: Ending): void => {
        attempt.overAt = attempt.begunAt + afterMs;
        if (typeof result === "string" || result.status >= 300)
          attempt.receiver.onFailure(typeof result === "string" ? result : result.status);
        process.later(attempt.overAt - this.#time.now, () => end(result));
      };
      this.#exchange(attempt, learn);
      process.reaches("send: on its way", attempt.receiver);
    });
  }

  #begin(process: SimProcess, delivery: Delivery): Attempt {
    const list = this.#wire.of(delivery, Math.floor(this.#time.now / 1_000));
    const headers = new Map<string, string>();
    for (let at = 0; at < list.length; at += 2) headers.set(list[at]!, list[at + 1]!);
    const receiver = this.#receivers.get(new URL(delivery.url).host);
    if (!receiver) throw new Error(`Nobody is at ${delivery.url}.`);
    const body = Buffer.from(delivery.payload);
    const attempt: Attempt = { process, receiver, url: delivery.url, headers, body, begunAt: this.#time.now };
    this.attempts.push(attempt);
    this.#journal.note(
      process.name,
      `sends ${delivery.id} (${delivery.eventId}) to ${receiver.name}, attempt ${headers.get("x-hookwell-attempt")}`,
    );
    return attempt;
  }

  /** Decides what becomes of a request, and has it happen. A request that its sender gave up never arrives. */
  #exchange(attempt: Attempt, learn: (ending: Ending) => void): void {
    const { receiver } = attempt;
    const { link } = receiver;
    const rng = this.#rng;
    const there = rng.chance(receiver.near ? 0 : 0.05) ? rng.int(100, 3_000) : rng.int(1, 10);
    const unseen = this.#unseen(link, there);
    if (unseen) {
      this.#journal.count("fault", `network: ${link}`);
      learn(unseen);
    } else
      this.#time.after(there, () => {
        const answer = receiver.receive(attempt);
        attempt.answeredAt = this.#time.now + answer.afterMs;
        learn(this.#ending(link, attempt.answeredAt + rng.int(1, 10) - attempt.begunAt, answer));
      });
  }

  /** How it ends when the receiver never sees it. */
  #unseen(link: LinkState, there: number): Ending | undefined {
    const rng = this.#rng;
    if (link === "partitioned") return { afterMs: connectMs, result: "connect_timeout" };
    if (link === "refusing") return { afterMs: there, result: "connect_refused" };
    if (link === "losing requests" && rng.chance(0.7)) return { afterMs: exchangeMs, result: "timeout" };
    if (link === "resetting" && rng.chance(0.5)) return { afterMs: there, result: "reset" };
    return undefined;
  }

  /** How it ends when the receiver saw it, and its answer would be back after so long. */
  #ending(link: LinkState, backMs: number, answer: Answer): Ending {
    const rng = this.#rng;
    const fault = (ending: Ending): Ending => {
      this.#journal.count("fault", `network: ${link}`);
      return ending;
    };
    const late: Ending = { afterMs: exchangeMs, result: "timeout" };
    if (link === "losing answers" && rng.chance(0.7)) return fault(late);
    if (backMs > exchangeMs) return late;
    if (link === "resetting") return fault({ afterMs: backMs, result: "reset" });
    if (link !== "slow bodies") return { afterMs: backMs, result: answer };
    // The status decides, however long the body takes.
    return fault({ afterMs: Math.min(backMs + rng.int(100, 20_000), exchangeMs), result: answer });
  }
}
