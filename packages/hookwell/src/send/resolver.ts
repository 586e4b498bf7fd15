import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { systemCode, TransportFailure } from "./failures.ts";

/** An address that a name stands for. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Looks a name up. Resolves with every address, best first; rejects when there is none. */
export type Resolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** The resolver of the system, which knows the hosts file as well as DNS. */
export function systemResolver(): Resolver {
  return slowNamesApart(
    async (hostname) => (await lookup(hostname, { all: true, order: "verbatim" })) as ResolvedAddress[],
  );
}

const slowNames = 1_000;

/**
 * Lets names whose last look-up took `slowMs` or longer wait for each other. The system's look-ups share four
 * threads, so names whose servers are dead would keep every other name, and every file read, waiting.
 */
export function slowNamesApart(resolver: Resolver, slowMs = 1_000): Resolver {
  const slow = new Set<string>();
  let last: Promise<unknown> = Promise.resolve();
  const timed: Resolver = async (hostname) => {
    const began = performance.now();
    try {
      return await resolver(hostname);
    } finally {
      slow.delete(hostname);
      if (performance.now() - began >= slowMs) {
        if (slow.size >= slowNames) slow.delete(slow.values().next().value as string);
        slow.add(hostname);
      }
    }
  };
  return (hostname) => {
    if (!slow.has(hostname)) return timed(hostname);
    const turn = last.then(() => timed(hostname));
    last = turn.catch(() => {});
    return turn;
  };
}

/**
 * A resolver that answers an address with itself, asks for one name only once at a time, and fails with
 * `dns_failed`.
 */
export function resolveOnce(resolver: Resolver): Resolver {
  const pending = new Map<string, Promise<readonly ResolvedAddress[]>>();
  return (hostname) => {
    const family = isIP(hostname);
    if (family !== 0) return Promise.resolve([{ address: hostname, family: family as 4 | 6 }]);
    const known = pending.get(hostname);
    if (known !== undefined) return known;
    const asked = ask(resolver, hostname).finally(() => pending.delete(hostname));
    pending.set(hostname, asked);
    return asked;
  };
}

async function ask(resolver: Resolver, hostname: string): Promise<readonly ResolvedAddress[]> {
  let addresses: readonly ResolvedAddress[];
  try {
    addresses = await resolver(hostname);
  } catch (error) {
    throw new TransportFailure("dns_failed", `${hostname} could not be looked up (${systemCode(error)})`, {
      cause: error,
    });
  }
  if (addresses.length > 0) return addresses;
  throw new TransportFailure("dns_failed", `${hostname} has no address`);
}
