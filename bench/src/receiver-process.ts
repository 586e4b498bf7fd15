import { Child } from "./rpc.ts";

export interface ReceivedCounts {
  readonly requests: number;
  /** Different pairs of path and webhook-id. */
  readonly different: number;
  /** Of the steady clock, in ms. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/** The receiver in its own process. */
export class Receiver {
  readonly #child: Child;
  readonly origin: string;

  private constructor(child: Child, port: number) {
    this.#child = child;
    this.origin = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<Receiver> {
    const child = new Child(new URL("./receiver.ts", import.meta.url), "the receiver");
    return new Receiver(child, await child.call<number>("listen"));
  }

  reset(): Promise<void> {
    return this.#child.call("reset");
  }

  /** Resolves when so many different deliveries have come since the reset. @throws after `patienceMs` */
  async expect(count: number, patienceMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(async () => {
        const { different } = await this.counts();
        reject(new Error(`Only ${different} of ${count} deliveries came within ${patienceMs} ms`));
      }, patienceMs);
    });
    try {
      await Promise.race([this.#child.call("expect", count), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  counts(): Promise<ReceivedCounts> {
    return this.#child.call("counts");
  }

  /** When each "<path> <webhook-id>" came first. */
  times(): Promise<ReadonlyMap<string, number>> {
    return this.#child.call("times");
  }

  close(): Promise<void> {
    return this.#child.end();
  }
}
