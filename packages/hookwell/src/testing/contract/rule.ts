import type { StoreWorld } from "./store-world.ts";

/** States one rule of the contract: the name says it, the body shows it on a new empty store. */
export type Rule = (name: string, body: (world: StoreWorld) => Promise<void>) => void;
