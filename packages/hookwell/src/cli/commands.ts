import { cancel } from "./cancel.ts";
import type { Command } from "./command.ts";
import { deliveries } from "./deliveries.ts";
import { doctor } from "./doctor.ts";
import { emit } from "./emit.ts";
import { events } from "./events.ts";
import { eventsExplain } from "./events-explain.ts";
import { eventsRelease } from "./events-release.ts";
import { hold } from "./hold.ts";
import { keys } from "./keys.ts";
import { keysCreate } from "./keys-create.ts";
import { keysDelete } from "./keys-delete.ts";
import { keysGenerate } from "./keys-generate.ts";
import { listen } from "./listen.ts";
import { migrate } from "./migrate.ts";
import { prune } from "./prune.ts";
import { release } from "./release.ts";
import { replay } from "./replay.ts";
import { replayList } from "./replay-list.ts";
import { replayShow, replayStop } from "./replay-one.ts";
import { retry } from "./retry.ts";
import { rotateKey } from "./rotate-key.ts";
import { serve } from "./serve.ts";
import { subscriptions } from "./subscriptions.ts";
import { subscriptionsCreate } from "./subscriptions-create.ts";
import { subscriptionsDelete } from "./subscriptions-delete.ts";
import { subscriptionsRotateSecret } from "./subscriptions-rotate-secret.ts";
import {
  subscriptionsDisable,
  subscriptionsEnable,
  subscriptionsPause,
  subscriptionsResume,
} from "./subscriptions-status.ts";
import { subscriptionsTest } from "./subscriptions-test.ts";
import { subscriptionsUpdate } from "./subscriptions-update.ts";
import { worker } from "./worker.ts";

export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly Command[];
}

/** Every command, in the order of `hookwell --help` and of docs/reference/cli.md. */
export const commandGroups: readonly CommandGroup[] = [
  { title: "Run", commands: [migrate, serve, worker, listen] },
  {
    title: "Events and deliveries",
    commands: [
      emit,
      events,
      eventsExplain,
      eventsRelease,
      deliveries,
      retry,
      cancel,
      replay,
      replayList,
      replayShow,
      replayStop,
      hold,
      release,
    ],
  },
  {
    title: "Subscriptions",
    commands: [
      subscriptions,
      subscriptionsCreate,
      subscriptionsUpdate,
      subscriptionsPause,
      subscriptionsResume,
      subscriptionsDisable,
      subscriptionsEnable,
      subscriptionsRotateSecret,
      subscriptionsTest,
      subscriptionsDelete,
    ],
  },
  { title: "Keys", commands: [keys, keysCreate, keysDelete, keysGenerate, rotateKey] },
  { title: "Upkeep", commands: [doctor, prune] },
];
