import type { WorkConfig } from "./contestants/contract.ts";
import type { EmitPlan } from "./emitting.ts";
import { Child } from "./rpc.ts";
import type { Usage } from "./worker-process.ts";

/** A worker process, as the controller sees it. */
export class WorkerHandle {
  readonly #child: Child;

  private constructor(child: Child) {
    this.#child = child;
  }

  /** `profile`: a directory for a CPU profile of the process, written when it ends. */
  static async open(config: WorkConfig, profile?: string): Promise<WorkerHandle> {
    const flags = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
    const child = new Child(
      new URL("./worker-process.ts", import.meta.url),
      `the worker of ${config.contestant}`,
      [],
      flags,
    );
    await child.call("open", config);
    return new WorkerHandle(child);
  }

  start(expected = 0): Promise<void> {
    return this.#child.call("start", expected);
  }

  stop(): Promise<void> {
    return this.#child.call("stop");
  }

  usage(): Promise<Usage> {
    return this.#child.call("usage");
  }

  /** Emits from inside the worker process. */
  emit(plan: EmitPlan): Promise<ReadonlyMap<string, number>> {
    return this.#child.call("emit", plan);
  }

  async close(): Promise<void> {
    await this.#child.call("close");
    await this.#child.end();
  }
}
