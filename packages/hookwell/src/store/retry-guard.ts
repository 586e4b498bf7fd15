import { InvalidStateError } from "../model/errors.ts";

/**
 * A subscription that is deleted, or whose receiver said that it is gone, has its pending rows cancelled: one that is
 * tried again would be, too.
 * @throws InvalidStateError
 */
export function checkRetried(
  deliveryId: string,
  status: string | undefined,
  statusReason: string | undefined,
): void {
  if (status === "deleted")
    throw new InvalidStateError("delivery", deliveryId, "of a deleted subscription", "retry");
  if (status === "disabled" && statusReason === "gone")
    throw new InvalidStateError(
      "delivery",
      deliveryId,
      "of a subscription that was disabled because its receiver is gone",
      "retry",
      "enable the subscription first",
    );
}
