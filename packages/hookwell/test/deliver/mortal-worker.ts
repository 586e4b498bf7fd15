import type { Loops } from "../../src/deliver/loops.ts";
import type { Sender } from "../../src/send/sender.ts";
import type { OutboxStore } from "../../src/store/contract.ts";

/**
 * A worker that can be killed: from then on it hears of no answer, neither of a receiver nor of the store, and asks
 * for nothing. What it had asked for goes on without it, as it does when a process is gone.
 */
export class MortalWorker {
  readonly loops: Loops;
  /** Its sends under way. */
  sending = 0;
  #dead = false;

  constructor(store: OutboxStore, sender: Sender, start: (store: OutboxStore, sender: Sender) => Loops) {
    const counting: Sender = {
      deliver: async (delivery, options) => {
        this.sending++;
        try {
          return await sender.deliver(delivery, options);
        } finally {
          this.sending--;
        }
      },
    };
    this.loops = start(this.#mortal(store), this.#mortal(counting));
  }

  /** Nothing of its loops ever ends after this. */
  kill(): void {
    this.#dead = true;
  }

  #mortal<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const member: unknown = Reflect.get(object, name, object);
        if (typeof member !== "function") return member;
        return (...given: unknown[]) => {
          if (this.#dead) return new Promise(() => {});
          const answer: unknown = Reflect.apply(member, object, given);
          return answer instanceof Promise ? this.#heard(answer) : answer;
        };
      },
    });
  }

  #heard(answer: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      answer.then(
        (value) => !this.#dead && resolve(value),
        (error: unknown) => !this.#dead && reject(error),
      );
    });
  }
}
