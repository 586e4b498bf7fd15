import type { Terminal } from "../command.ts";

/** The work was broken off between two steps. */
export class StoppedError extends Error {
  override readonly name = "StoppedError";
}

/** Thrown between the steps of a long work, never in the middle of one. @throws StoppedError after Ctrl-C */
export function throwIfStopped({ stopped }: Terminal): void {
  if (stopped?.aborted) throw new StoppedError("interrupted.");
}

/** Waits, or less long when the work is broken off. */
export function pause(terminal: Terminal, ms: number): Promise<void> {
  const { stopped } = terminal;
  return new Promise((resolve) => {
    if (stopped?.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      stopped?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stopped?.addEventListener("abort", end, { once: true });
  });
}
