import { setTimeout as delay } from "node:timers/promises";
import type { Timers } from "hookwell";
import { safeReason } from "./safe-text.ts";
import type { Step, StepLane } from "./step.ts";
import type { StepOutcome, StepQueue } from "./step-queue.ts";

export interface StepLoopDeps {
  readonly queue: StepQueue;
  readonly lanes: readonly StepLane[];
  readonly perform: (step: Step) => Promise<StepOutcome>;
  /** A step is over: another one may wait for it, here or in another loop. */
  readonly onOver: () => void;
  /** Called in the background before every look for work. */
  readonly beforeLook?: () => Promise<void>;
  readonly timers: Timers;
  readonly logger: { info(message: string): void; error(message: string): void };
}

/** Does the steps of some lanes, several at a time: one that hangs holds back no other. */
export interface StepLoop {
  start(): void;
  /** There may be something to do. */
  kick(): void;
  /** Does what is due now and waits for it. @returns how many steps it did */
  drain(): Promise<number>;
  /** Takes nothing more and waits for what it began; every step has a time limit. */
  stop(): Promise<void>;
}

/** At once, in one process. */
const concurrency = 8;
/** Longer than any step may take: a process that died gives its steps back after it. */
const leaseMs = 60_000;
const pollMs = 5_000;
const recordDelaysMs = [100, 400, 1_600, 6_400];

export const systemTimers: Timers = {
  async sleep(ms, signal) {
    await delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  },
};

export function stepLoop(deps: StepLoopDeps): StepLoop {
  const { queue, lanes, timers, logger } = deps;
  const inFlight = new Set<Promise<void>>();
  let running: Promise<void> | undefined;
  let isStopping = false;
  let isLost = false;
  let wake = new AbortController();
  const kick = (): void => wake.abort();

  async function fill(): Promise<number> {
    const free = concurrency - inFlight.size;
    const steps = free > 0 ? await queue.claim(lanes, free, leaseMs) : [];
    for (const step of steps) {
      const work: Promise<void> = run(step).finally(() => {
        inFlight.delete(work);
        deps.onOver();
      });
      inFlight.add(work);
    }
    return steps.length;
  }

  /** Never rejects. */
  async function run(step: Step): Promise<void> {
    try {
      const outcome = await deps.perform(step);
      await record(step, outcome);
    } catch (error) {
      logger.error(
        `The end of ${step.kind} of booking ${step.bookingId} was not recorded, and it may be done again: ${safeReason(error)}`,
      );
    }
  }

  /** A mail that was sent and not recorded is sent again when the lease ends; so this tries for a while. */
  async function record(step: Step, outcome: StepOutcome): Promise<void> {
    for (const wait of recordDelaysMs) {
      try {
        await queue.finish(step, outcome);
        return;
      } catch {
        await timers.sleep(wait);
      }
    }
    await queue.finish(step, outcome);
  }

  async function loop(): Promise<void> {
    while (!isStopping) {
      // Before the look, so that a kick during it is not lost.
      wake = new AbortController();
      let count = 0;
      try {
        await deps.beforeLook?.();
        count = await fill();
        if (isLost) logger.info(`The side effects (${lanes.join(", ")}) go on.`);
        isLost = false;
      } catch (error) {
        if (!isLost)
          logger.error(`The side effects (${lanes.join(", ")}) cannot be read: ${safeReason(error)}`);
        isLost = true;
      }
      if (count === 0 && !isStopping) await timers.sleep(pollMs, wake.signal);
    }
  }

  return {
    start() {
      running ??= loop();
    },
    kick,
    async drain() {
      let done = 0;
      for (;;) {
        const count = await fill();
        done += count;
        if (inFlight.size > 0) await Promise.race(inFlight);
        else if (count === 0) return done;
      }
    },
    async stop() {
      isStopping = true;
      kick();
      await running;
      await Promise.all(inFlight);
    },
  };
}
