/** The REST API of Hookwell, and the pieces that a program which serves it is put together from. */

export { stopOnSignal, storeFromEnvironment } from "hookwell/environment";
export { type FirstKey, firstAdminKey } from "./first-key.ts";
export { type FetchHandler, type HandlerOptions, hookwellHandler } from "./handler.ts";
export type { Authorize, Caller } from "./http/caller.ts";
export { type Scope, scopes } from "./http/scopes.ts";
export { type Listening, type ListenOptions, listen } from "./listen.ts";
export { type RunningServer, type ServeOptions, serve } from "./serve.ts";
