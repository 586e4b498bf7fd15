import type { Delivery, Exchange, Outcome } from "../model/delivery.ts";
import type { Random } from "../model/random.ts";
import type { RetryPolicyInput } from "../model/retry.ts";
import { DeliveryError, SendAbortedError, type SendReceipt } from "../send/sender.ts";
import { allowsAttempt, defaultRetryPolicy, delayAfter, longestDelay } from "./retry-policy.ts";

/** What became of a claimed delivery, without the id and token that make it an {@link Outcome}. */
export type Decision = Outcome extends infer Kind
  ? Kind extends Outcome
    ? Omit<Kind, "id" | "leaseToken">
    : never
  : never;

/** How one call of the sender ended. */
export type SendResult =
  // biome-ignore lint/suspicious/noConfusingVoidType: what a sender resolves with
  | { readonly receipt: SendReceipt | void }
  /** `aborted`: the worker had told the sender to stop. */
  | { readonly error: unknown; readonly aborted: boolean };

/** When the exchange ran, as far as the worker knows: used where the sender says nothing. */
export interface SendTimes {
  readonly startedAt: Date;
  readonly durationMs: number;
}

/**
 * The decision before a send: a row whose claim went beyond the limit was lost by workers that never reported,
 * and is not sent again. Undefined = send it.
 */
export function decideBeforeSend(delivery: Delivery, policy: RetryPolicyInput): Decision | undefined {
  if (allowsAttempt(policy, delivery.attempts)) return undefined;
  return {
    kind: "failed",
    reason: "worker_lost",
    errorCode: "worker_lost",
    error: `worker lost during attempt ${delivery.attempts - 1}`,
  };
}

/** What a send looked like, however it ended. */
export function exchangeOf(delivery: Delivery, result: SendResult, times: SendTimes): Exchange {
  return "receipt" in result ? succeeded(result.receipt, times) : failed(delivery, result.error, times);
}

/** The one place that says what the result of a send means for its delivery. */
export function decide(
  delivery: Delivery,
  result: SendResult,
  times: SendTimes,
  policy: RetryPolicyInput,
  random: Random,
): Decision {
  const exchange = exchangeOf(delivery, result, times);
  if ("receipt" in result) return { kind: "delivered", exchange };
  if (wasStopped(result.error, result.aborted)) return { kind: "released" };
  if (exchange.statusCode === 410) return { kind: "gone", exchange };
  const breakable = isBreakable(exchange);
  const delay = delayAfter(policy, delivery.attempts, random);
  const held = retryAfter(result.error, longestDelay(policy));
  const hold = held === undefined ? {} : { holdLaneMs: held };
  if (delay === undefined)
    return {
      kind: "failed",
      exchange,
      reason: "attempts_exhausted",
      errorCode: exchange.errorCode!,
      error: exchange.error!,
      breakable,
      ...hold,
    };
  return { kind: "retry", exchange, delayMs: Math.max(delay, held ?? 0), breakable, ...hold };
}

/** What says that the receiver is in trouble, whatever it was sent: no answer at all, 429, 5xx. */
function isBreakable({ statusCode }: Exchange): boolean {
  return statusCode === undefined || statusCode === 429 || statusCode >= 500;
}

/** Asks with the policy; one of the application's that throws must not lose the delivery: the default stands in. */
export function withUsable<T>(
  policy: RetryPolicyInput,
  report: (message: string) => void,
  ask: (policy: RetryPolicyInput) => T,
): T {
  try {
    return ask(policy);
  } catch (error) {
    report(`A retry policy threw, the default one is used instead: ${errorText(error)}`);
    return ask(defaultRetryPolicy());
  }
}

/** An exchange that ended because the worker stopped it says nothing about the receiver, unless it had answered. */
function wasStopped(error: unknown, aborted: boolean): boolean {
  if (error instanceof SendAbortedError) return true;
  return aborted && !(error instanceof DeliveryError && error.details.statusCode !== undefined);
}

/** Milliseconds of a Retry-After, at most `cap`; undefined when there is none or it makes no sense. */
function retryAfter(error: unknown, cap: number): number | undefined {
  const asked = error instanceof DeliveryError ? error.details.retryAfterMs : undefined;
  const held = Math.ceil(Math.min(asked ?? 0, cap));
  return held > 0 ? held : undefined;
}

// biome-ignore lint/suspicious/noConfusingVoidType: what a sender resolves with
function succeeded(receipt: SendReceipt | void, times: SendTimes): Exchange {
  if (!receipt) return times;
  const { startedAt, durationMs, statusCode, excerpt } = receipt;
  return excerpt === undefined
    ? { startedAt, durationMs, statusCode }
    : { startedAt, durationMs, statusCode, excerpt };
}

function failed(delivery: Delivery, error: unknown, times: SendTimes): Exchange {
  if (!(error instanceof DeliveryError))
    return { ...times, errorCode: "send_failed", error: withoutSecrets(delivery, errorText(error)) };
  const { startedAt, durationMs, statusCode, excerpt } = error.details;
  return {
    startedAt,
    durationMs,
    ...(statusCode === undefined ? {} : { statusCode }),
    ...(excerpt === undefined ? {} : { excerpt }),
    errorCode: error.code,
    error: withoutSecrets(delivery, error.message),
  };
}

/** The text of whatever was thrown; never empty. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text || "unknown error";
}

/** A sender that somebody else wrote may quote what it was given. */
function withoutSecrets(delivery: Delivery, text: string): string {
  let safe = text;
  for (const secret of [delivery.secret, ...(delivery.secrets ?? [])])
    if (secret) safe = safe.replaceAll(secret, "[secret]");
  return safe;
}
