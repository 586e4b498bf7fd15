export type { AsyncScope, StoreHarness, StoreUnderTest, TestRunner } from "./contract/harness.ts";
export { storeContract } from "./contract/store-contract.ts";
export {
  type Answer,
  type AnswerParts,
  answers,
  type ReceivedRequest,
  type Receiver,
  type ReceiverOptions,
  startReceiver,
} from "./receiver.ts";
