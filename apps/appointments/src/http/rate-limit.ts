const windowMs = 60_000;
/** Addresses that are remembered at once; beyond it those whose minute is over are forgotten first. */
const remembered = 10_000;

/** Counts what each address does in a minute, in this process. */
export interface RateLimiter {
  /** Undefined = allowed and counted; else the seconds until the address may try again. */
  take(address: string): number | undefined;
}

/** At most `limit` in each minute, which begins with an address's first request. */
export function rateLimiter(limit: number, now: () => Date): RateLimiter {
  const windows = new Map<string, { readonly endsAt: number; count: number }>();
  return {
    take(address) {
      const at = now().getTime();
      const window = windows.get(address);
      if (window === undefined || window.endsAt <= at) {
        windows.delete(address);
        if (windows.size >= remembered) forget(windows, at);
        windows.set(address, { endsAt: at + windowMs, count: 1 });
        return undefined;
      }
      if (window.count >= limit) return Math.ceil((window.endsAt - at) / 1_000);
      window.count++;
      return undefined;
    },
  };
}

function forget(windows: Map<string, { readonly endsAt: number }>, at: number): void {
  for (const [address, { endsAt }] of windows) if (endsAt <= at) windows.delete(address);
  // The oldest are first in a Map.
  for (const address of windows.keys()) {
    if (windows.size < remembered) break;
    windows.delete(address);
  }
}
