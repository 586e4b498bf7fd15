import { deliveryId } from "../model/ids.ts";
import { parseJson } from "../model/json.ts";
import type { Now, OutboxStore } from "../store/contract.ts";
import type { MissingDelivery, MissingFill, MissingKey } from "../store/replay-contract.ts";
import { storable } from "../store/storable.ts";
import { type DispatcherConfig, dispatcherDefaults, retryMs } from "./dispatcher.ts";
import { envelopeEvent, itemOf } from "./draft.ts";
import { enrichAll } from "./enrichment.ts";

export interface MissingFillerConfig extends Omit<DispatcherConfig, "store"> {
  readonly store: Pick<OutboxStore, "replays">;
}

/** What there is to say of an event before it is rendered. */
type Renderable = MissingDelivery & Required<Pick<MissingDelivery, "event" | "match">>;

/**
 * Renders the events that replays found without a delivery, as the dispatcher would have: outside the transaction,
 * those of its own catalogue, with the patch that is stored or that `enrich` gives now.
 */
export class MissingFiller {
  readonly #config: Required<MissingFillerConfig>;
  readonly #routes: readonly string[];

  constructor(config: MissingFillerConfig) {
    this.#config = { ...dispatcherDefaults, catalogue: new Map(), ...config };
    this.#routes = [...this.#config.catalogue.keys(), "*"];
  }

  /** One batch. An event that cannot be rendered is tried again, then skipped, and stops no other. Rejects when the store fails. */
  async fillOnce(): Promise<{ readonly queued: number; readonly again: boolean }> {
    const { batch, store } = this.#config;
    const taken = await store.replays.takeMissing(this.#routes, batch, this.#now());
    if (taken.length === 0) return { queued: 0, again: false };
    const patches = await this.#patches(taken.filter(isRenderable));
    const fills: MissingFill[] = [];
    for (const missing of taken) {
      try {
        fills.push(this.#render(missing, patches.get(missing)));
      } catch (error) {
        await this.#failed(missing, missing.tries, error);
      }
    }
    return { queued: await this.#fillAll(fills, taken), again: taken.length >= batch };
  }

  async #patches(rows: readonly Renderable[]): Promise<ReadonlyMap<MissingDelivery, string>> {
    const { catalogue, timers, enrichTimeoutMs, observe } = this.#config;
    const asked = rows.flatMap((row) => {
      const { event } = row;
      const definition = event.route === "*" ? undefined : catalogue.get(event.type);
      if (!definition?.enrich || event.patch !== undefined || event.damage) return [];
      return [{ row, event, definition, asked: { ...envelopeEvent(event), data: parseJson(event.data) } }];
    });
    const patches = await enrichAll(asked, { timers, timeoutMs: enrichTimeoutMs, observe });
    return new Map(asked.map(({ row, event }) => [row, patches.get(event) ?? ""]));
  }

  #render(missing: MissingDelivery, patch: string | undefined): MissingFill {
    const { replayId, projectId, eventId } = missing;
    const key: MissingKey = { replayId, projectId, eventId };
    if (!isRenderable(missing)) return key;
    const { event, match } = missing;
    if (event.damage) throw new Error(event.damage);
    const { subscriptionId, endpointId, ordered } = match;
    const row = {
      id: deliveryId(eventId, subscriptionId),
      subscriptionId,
      endpointId,
      ...(ordered && { ordered }),
    };
    // Capture froze the body of every later delivery.
    if (event.fannedOut) return { ...key, delivery: row };
    const definition = event.route === "*" ? undefined : this.#config.catalogue.get(event.type);
    const draft = { event, definition, matches: [match], data: parseJson(event.data) };
    const { bodies, patch: stored } = itemOf(draft, patch);
    return { ...key, delivery: { ...row, body: bodies[0]! }, ...(stored !== undefined && { patch: stored }) };
  }

  async #fillAll(fills: readonly MissingFill[], taken: readonly MissingDelivery[]): Promise<number> {
    const { replays } = this.#config.store;
    try {
      return await replays.fillMissing(fills, this.#now());
    } catch {
      // One of them may be to blame, or the store: alone, each shows which.
      let queued = 0;
      for (const fill of fills) {
        try {
          queued += await replays.fillMissing([fill], this.#now());
        } catch (error) {
          const tries = taken.find(
            ({ replayId, eventId }) => replayId === fill.replayId && eventId === fill.eventId,
          );
          await this.#failed(fill, tries?.tries ?? 0, error);
        }
      }
      return queued;
    }
  }

  /** Rejects when the store cannot even note that. */
  async #failed({ replayId, projectId, eventId }: MissingKey, tries: number, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message || error.name : String(error);
    const text = storable(`Event ${eventId} could not be rendered: ${message}`.slice(0, 1_000));
    await this.#config.store.replays.failMissing(
      { replayId, projectId, eventId },
      text,
      retryMs[tries] ?? null,
      this.#now(),
    );
  }

  #now(): Now {
    return this.#config.virtualTime ? this.#config.clock() : null;
  }
}

function isRenderable(missing: MissingDelivery): missing is Renderable {
  return missing.event !== undefined && missing.match !== undefined;
}
