export {
  type Answer,
  type AnswerParts,
  answers,
  type ReceivedRequest,
  type Receiver,
  type ReceiverOptions,
  startReceiver,
} from "./receiver.ts";
