export { MemoryOutbox } from "./memory-outbox.ts";
export { type MemoryTransaction, memoryTx } from "./transaction.ts";
