/** One request as a receiver got it. */
export interface Sent {
  readonly to: string;
  readonly event: string;
  readonly body: string;
}

/** What became of the events of some rounds. */
export interface Tally {
  readonly rounds: number;
  /** Transactions with an event in them that were rolled back, by the application or by the death of its process. */
  readonly rolledBack: number;
  /** Events whose transaction is committed, by the application's own table. */
  readonly committed: number;
  /** Of those, how many did not reach every endpoint. */
  readonly lost: number;
  /** Events that exist or were delivered although their transaction is not. */
  readonly invented: number;
  /** Deliveries made more often than once, beyond what was asked for by replays. */
  readonly duplicates: number;
  /** Repeats whose bytes are not those of the first. */
  readonly changed: number;
  /** Longest time from a commit to the first arrival of its event at an endpoint, in ms. */
  readonly stallMs?: number;
  /** Longest time in which nothing arrived anywhere although events came in, in ms. */
  readonly silentMs?: number;
}

/** Compares what was committed with what was received. `asked`: repeats that replays asked for. */
export function tally(
  seen: {
    readonly committed: readonly string[];
    /** Events that exist although nobody committed their change. */
    readonly strangers: readonly string[];
    readonly endpoints: readonly string[];
    readonly sent: readonly Sent[];
  },
  asked: number,
): Omit<Tally, "rounds" | "rolledBack"> {
  const bodies = new Map<string, Set<string>>();
  for (const { to, event, body } of seen.sent) {
    const key = `${to} ${event}`;
    bodies.set(key, (bodies.get(key) ?? new Set()).add(body));
  }
  const committed = new Set(seen.committed);
  const invented = new Set([
    ...seen.strangers,
    ...seen.sent.map(({ event }) => event).filter((event) => !committed.has(event)),
  ]);
  const arrived = (event: string): boolean => seen.endpoints.every((to) => bodies.has(`${to} ${event}`));
  return {
    committed: committed.size,
    lost: [...committed].filter((event) => !arrived(event)).length,
    invented: invented.size,
    duplicates: seen.sent.length - bodies.size - asked,
    changed: [...bodies.values()].filter(({ size }) => size > 1).length,
  };
}
