import type { Caller } from "../users/user-access.ts";

/** What middleware leaves for the routes. */
export interface AppEnvironment {
  readonly Variables: {
    readonly requestId: string;
    readonly caller: Caller;
  };
}
