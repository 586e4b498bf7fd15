import { type ApiScope, apiScopes } from "hookwell";

/** What a key may do. `admin` includes the others. */
export const scopes = apiScopes;
export type Scope = ApiScope;

/** One sentence each, for the API description and the guides. */
export const scopeMeanings: Readonly<Record<Scope, string>> = {
  emit: "Emit events and read the catalogue.",
  read: "Read subscriptions, events, deliveries and the catalogue.",
  operate:
    "Retry and cancel deliveries, release parked events, hold and release, pause, resume, disable, enable and test subscriptions.",
  manage:
    "Create, change and delete subscriptions, pause, resume, disable, enable and test them, rotate their secrets, and read the catalogue.",
  admin: "Everything, and making, listing and deleting keys.",
};

export function isScope(value: unknown): value is Scope {
  return (scopes as readonly unknown[]).includes(value);
}
