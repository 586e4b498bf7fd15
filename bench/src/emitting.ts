import type { Side } from "./contestants/contract.ts";
import { steadyMs } from "./measuring.ts";

/** Events at a steady pace. */
export interface EmitPlan {
  readonly count: number;
  readonly everyMs: number;
  /** How many subscriptions take turns; absent = every event goes to all. */
  readonly to?: number;
}

/** Answers when each emit began, before its transaction, by webhook-id. A late one does not wait for the pace. */
export async function emitAsPlanned(
  emitter: Pick<Side, "emit" | "emitToAll">,
  { count, everyMs, to }: EmitPlan,
): Promise<Map<string, number>> {
  const begun = new Map<string, number>();
  const first = steadyMs();
  for (let n = 0; n < count; n++) {
    const left = first + n * everyMs - steadyMs();
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    const at = steadyMs();
    begun.set(to === undefined ? await emitter.emitToAll() : await emitter.emit(n % to), at);
  }
  return begun;
}
