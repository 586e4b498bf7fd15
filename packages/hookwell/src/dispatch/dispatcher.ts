import type { Claims, DispatchRound } from "../deliver/claims.ts";
import type { Clock } from "../model/clock.ts";
import type { Catalogue } from "../model/definition.ts";
import type { EventKey, EventRecord } from "../model/event.ts";
import { parseJson } from "../model/json.ts";
import { matchableOf } from "../model/matching.ts";
import { type Observer, silent } from "../model/observe.ts";
import { systemTimers, type Timers } from "../model/timers.ts";
import type { DispatchItem, Now, OutboxStore } from "../store/contract.ts";
import { storable } from "../store/storable.ts";
import { type Draft, envelopeEvent, itemOf } from "./draft.ts";
import { enrichAll } from "./enrichment.ts";

export interface DispatcherConfig {
  readonly store: Pick<OutboxStore, "takeNew" | "matchSubscriptions" | "dispatch" | "failDispatch">;
  /** Its types are the ones this process may render, beside events captured without a catalogue. */
  readonly catalogue?: Catalogue;
  readonly clock: Clock;
  /** True: the store is given the clock's time; false: it uses the database's. */
  readonly virtualTime?: boolean;
  readonly observe?: Observer;
  /** Events per round. Default 100. */
  readonly batch?: number;
  /** How long `enrich` may take, in ms. Default 2,000. */
  readonly enrichTimeoutMs?: number;
  readonly timers?: Timers;
}

/** What a configuration leaves out. */
export const dispatcherDefaults = {
  virtualTime: false,
  observe: silent,
  batch: 100,
  enrichTimeoutMs: 2_000,
  timers: systemTimers,
};

/** A guess that keeps the first batch small. */
const firstRowsPerEvent = 8;

/** Waits before the repeated tries of an event that could not be dispatched, in ms; after the last it is parked. */
export const retryMs = [1_000, 2_000, 4_000, 8_000, 16_000];

/** What one round has learnt; kept while a failed batch is repeated event by event, so that nobody is asked twice. */
interface Round {
  readonly claims: Claims | undefined;
  dispatched: number;
  /** Rows that the dispatched events have. */
  made: number;
  /** Rows were queued that no worker was given. */
  queued: boolean;
  /** Patches as JSON text; "" = there is none. */
  readonly enriched: Map<EventRecord, string>;
  readonly broken: Map<EventRecord, unknown>;
}

/** An event as it is written. */
interface Rendered {
  readonly type: string;
  readonly item: DispatchItem;
  /** Capture has made its deliveries. */
  readonly captured: boolean;
}

/** Turns new events into deliveries: matches, enriches and renders outside the transaction, then writes in one. */
export class Dispatcher {
  readonly #config: Required<Omit<DispatcherConfig, "catalogue">>;
  readonly #catalogue: Catalogue;
  readonly #routes: readonly string[];
  /** What is expected of the next batch, from the last ones. */
  #rowsPerEvent = firstRowsPerEvent;

  constructor(config: DispatcherConfig) {
    this.#config = { ...dispatcherDefaults, ...config };
    this.#catalogue = config.catalogue ?? new Map();
    this.#routes = [...this.#catalogue.keys(), "*"];
  }

  /**
   * Dispatches one batch of new events; what `claims` have room for goes to its worker at once. An event that cannot be
   * dispatched is put off, then parked, and stops no other. Rejects when the store fails.
   */
  async dispatchOnce(claims?: Claims): Promise<DispatchRound> {
    const { store } = this.#config;
    const batch = this.#batch(claims);
    const events = await store.takeNew(this.#routes, batch, this.#now());
    const round: Round = {
      claims,
      dispatched: 0,
      made: 0,
      queued: false,
      enriched: new Map(),
      broken: new Map(),
    };
    if (events.length > 0) await this.#dispatchAll(events, round);
    const { dispatched, made, queued } = round;
    if (dispatched > 0) this.#rowsPerEvent = (this.#rowsPerEvent + made / dispatched) / 2;
    return { taken: events.length, dispatched, again: events.length >= batch, queued };
  }

  /** As many events as the worker can take the deliveries of at once: only those need no claim of their own. */
  #batch(claims: Claims | undefined): number {
    const { batch } = this.#config;
    if (!claims?.free) return batch;
    return Math.max(1, Math.min(batch, Math.floor(claims.free / this.#rowsPerEvent)));
  }

  async #dispatchAll(events: readonly EventRecord[], round: Round): Promise<void> {
    try {
      await this.#dispatchTogether(events, round);
    } catch {
      // One of them may be to blame, or the store: alone, each shows which.
      for (const event of events.filter((candidate) => !round.broken.has(candidate))) {
        try {
          await this.#dispatchTogether([event], round);
        } catch (error) {
          round.broken.set(event, error);
        }
      }
    }
    for (const [event, error] of round.broken) await this.#failed(event, error);
  }

  /** One transaction for all that can be rendered; the others are noted as broken. Rejects with nothing written. */
  async #dispatchTogether(events: readonly EventRecord[], round: Round): Promise<void> {
    const { store, observe } = this.#config;
    const drafts = await this.#draft(events, round);
    await this.#enrich(drafts, round);
    const items = new Map<string, Rendered>();
    for (const event of events) {
      const { projectId, id, type } = event;
      if (!event.fannedOut || round.broken.has(event)) continue;
      const item = { projectId, id, bodies: [], deliveries: [] };
      items.set(keyText(event), { type, item, captured: true });
    }
    for (const draft of drafts) {
      const { event } = draft;
      try {
        const item = itemOf(draft, round.enriched.get(event));
        items.set(keyText(event), { type: event.type, item, captured: false });
      } catch (error) {
        round.broken.set(event, error);
      }
    }
    if (items.size === 0) return;
    const claim = await round.claims?.begin();
    try {
      const given = [...items.values()].map(({ item }) => item);
      const { dispatched, ...claimed } = await store.dispatch(given, this.#now(), claim?.room);
      round.dispatched += dispatched.length;
      const before = round.made;
      for (const key of dispatched) {
        const known = items.get(keyText(key));
        if (!known) continue;
        const deliveries = known.item.deliveries.length;
        round.made += deliveries;
        round.queued ||= known.captured;
        observe("dispatched", { eventId: key.id, type: known.type, deliveries });
      }
      round.queued ||= round.made - before > claimed.deliveries.length + claimed.failed.length;
      claim?.took(claimed);
    } finally {
      claim?.end();
    }
  }

  /** Matches all events in one query. Those whose deliveries capture made need nothing. */
  async #draft(events: readonly EventRecord[], { broken }: Round): Promise<Draft[]> {
    for (const event of events) if (event.damage) broken.set(event, new Error(event.damage));
    const own = events.filter((event) => !event.fannedOut && !broken.has(event));
    if (own.length === 0) return [];
    const matches = await this.#config.store.matchSubscriptions(own.map(matchableOf));
    return own.flatMap((event, index) => {
      // Captured without a catalogue: rendered the same wherever it is taken, whatever this process knows.
      const definition = event.route === "*" ? undefined : this.#catalogue.get(event.type);
      try {
        return [{ event, definition, matches: matches[index] ?? [], data: parseJson(event.data) }];
      } catch (error) {
        broken.set(event, error);
        return [];
      }
    });
  }

  async #enrich(drafts: readonly Draft[], { enriched }: Round): Promise<void> {
    const { timers, enrichTimeoutMs, observe } = this.#config;
    const asked = drafts.flatMap(({ event, definition, matches, data }) =>
      definition?.enrich && matches.length > 0 && event.patch === undefined && !enriched.has(event)
        ? [{ event, definition, asked: { ...envelopeEvent(event), data } }]
        : [],
    );
    if (asked.length === 0) return;
    const patches = await enrichAll(asked, { timers, timeoutMs: enrichTimeoutMs, observe });
    for (const { event } of asked) enriched.set(event, patches.get(event) ?? "");
  }

  /** Puts the event off, or parks it. Rejects when the store cannot even note that. */
  async #failed(event: EventRecord, error: unknown): Promise<void> {
    const { store, observe } = this.#config;
    const message = error instanceof Error ? error.message || error.name : String(error);
    const text = storable(message.slice(0, 1_000));
    const retryInMs = retryMs[event.tries] ?? null;
    const { projectId, id, type } = event;
    if (!(await store.failDispatch({ projectId, id }, text, retryInMs, this.#now()))) return;
    observe("dispatchFailed", { eventId: id, error: text, tries: event.tries + 1 });
    if (retryInMs === null) observe("parked", { eventId: id, type, error: text });
  }

  #now(): Now {
    return this.#config.virtualTime ? this.#config.clock() : null;
  }
}

function keyText({ projectId, id }: EventKey): string {
  return `${projectId}\n${id}`;
}
