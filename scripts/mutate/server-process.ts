// The test server in a process of its own: it ends, and leaves nothing, when the one that started it does.
import setup from "../../packages/hookwell/test/support/postgres-server.ts";

let isWanted = true;
let stop: (() => Promise<void>) | undefined;
process.once("disconnect", () => {
  isWanted = false;
  void stop?.();
});
stop = await setup({ provide: (_name: "postgresUrl", url: string) => process.send?.(url) });
if (!isWanted) await stop();
