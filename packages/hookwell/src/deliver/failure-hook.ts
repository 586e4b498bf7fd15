import type { Delivery } from "../model/delivery.ts";
import type { Observer } from "../model/observe.ts";
import { errorText } from "./decide.ts";
import { momentOf } from "./outcome-buffer.ts";

/**
 * Told of an abandoned delivery, with status failed, after that was recorded; at most once per round. Must not
 * block. One that throws is reported and stops nothing.
 */
export type FailureHook = (delivery: Delivery) => void;

/** Tells observers and the hook of a delivery that was recorded as failed. */
export function reportFailed(
  delivery: Delivery,
  errorCode: string,
  { observe, failureHook }: { readonly observe: Observer; readonly failureHook?: FailureHook | undefined },
): void {
  observe("failed", { ...momentOf(delivery), errorCode, error: delivery.lastError ?? "unknown error" });
  callFailureHook(failureHook, delivery, observe);
}

export function callFailureHook(hook: FailureHook | undefined, delivery: Delivery, observe: Observer): void {
  if (!hook) return;
  const failed = (error: unknown): void =>
    observe("hookFailed", { deliveryId: delivery.id, error: errorText(error) });
  try {
    // A hook declared async is let through by the type; its rejection must not end the process.
    const result: unknown = hook(delivery);
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
