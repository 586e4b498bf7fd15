import { isHookwellError } from "../model/errors.ts";
import type { CaptureInput, CaptureResult } from "../model/event.ts";
import type { Observer } from "../model/observe.ts";
import type { OutboxStore } from "../store/contract.ts";
import { type EventFacts, type EventRules, prepareEvent, prepareEventSync } from "./prepare-event.ts";
import type { AsyncScope, Scopes } from "./scope.ts";
import type { EmitResult } from "./surface.ts";

/** An event with its facts, as `emitMany` takes it. */
export type UntypedEvent = EventFacts & { readonly type: string; readonly data: unknown };

/** Captures events in the transactions they belong to. */
export class Emitter {
  readonly #store: OutboxStore;
  readonly #rules: EventRules;
  readonly #scopes: Scopes;
  readonly #observe: Observer;
  readonly #wake: () => void;

  /** `wake` is told that a commit with work in it is coming. */
  constructor(parts: {
    readonly store: OutboxStore;
    readonly rules: EventRules;
    readonly scopes: Scopes;
    readonly observe: Observer;
    readonly wake: () => void;
  }) {
    this.#store = parts.store;
    this.#rules = parts.rules;
    this.#scopes = parts.scopes;
    this.#observe = parts.observe;
    this.#wake = parts.wake;
  }

  async emit(
    type: string,
    data: unknown,
    options: EventFacts & { readonly tx: unknown },
  ): Promise<EmitResult> {
    const { tx, ...facts } = options ?? {};
    const scope = this.#scopes.forAsync(tx);
    const prepared = prepareEvent(this.#rules, type, data, facts);
    const [result] = await (prepared instanceof Promise
      ? this.#captureLater(tx, [prepared])
      : this.#capture(scope, [prepared]));
    return result!;
  }

  async emitMany(events: readonly UntypedEvent[], options: { readonly tx: unknown }): Promise<EmitResult[]> {
    const scope = this.#scopes.forAsync(options?.tx);
    const prepared = events.map(({ type, data, ...facts }, index) =>
      inList(index, () => prepareEvent(this.#rules, type, data, facts)),
    );
    if (prepared.length === 0) return [];
    return prepared.some((event) => event instanceof Promise)
      ? this.#captureLater(options.tx, prepared)
      : this.#capture(scope, prepared as CaptureInput[]);
  }

  emitSync(type: string, data: unknown, options: EventFacts & { readonly tx: unknown }): EmitResult {
    const { tx, ...facts } = options ?? {};
    const scope = this.#scopes.forSync(tx);
    const event = prepareEventSync(this.#rules, type, data, facts);
    const [result] = this.#report([event], this.#store.captureSync(scope, [event]));
    return result!;
  }

  /** Waits for schemas, during which the transaction may have ended. */
  async #captureLater(
    tx: unknown,
    events: readonly (CaptureInput | Promise<CaptureInput>)[],
  ): Promise<EmitResult[]> {
    const prepared = await Promise.all(events);
    return this.#capture(this.#scopes.forAsync(tx), prepared);
  }

  async #capture(scope: AsyncScope, events: readonly CaptureInput[]): Promise<EmitResult[]> {
    return this.#report(events, await this.#store.capture(scope, events));
  }

  #report(events: readonly CaptureInput[], results: readonly CaptureResult[]): EmitResult[] {
    results.forEach(({ id, duplicate }, index) => {
      this.#observe("captured", { eventId: id, type: events[index]!.type, duplicate });
    });
    this.#wake();
    this.#store.notify();
    return results.map(({ id, duplicate }) => ({ id, duplicate }));
  }
}

/** Marks the error of one event of a list with its position. */
function inList(
  index: number,
  prepare: () => CaptureInput | Promise<CaptureInput>,
): CaptureInput | Promise<CaptureInput> {
  const mark = (error: unknown): never => {
    if (isHookwellError(error)) error.index = index;
    throw error;
  };
  try {
    const prepared = prepare();
    return prepared instanceof Promise ? prepared.catch(mark) : prepared;
  } catch (error) {
    return mark(error);
  }
}
