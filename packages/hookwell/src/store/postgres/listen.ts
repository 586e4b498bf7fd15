import { ConfigurationError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import { systemRandomNumber } from "../../model/random.ts";
import type { Database } from "./database.ts";

/** What is used of a `pg` Client. */
interface ListenClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
  on(event: "notification" | "error" | "end", listener: (value?: unknown) => void): unknown;
}

const coalesceMs = 50;
const firstBackoffMs = 50;
const longestBackoffMs = 5_000;

/**
 * Notices between processes: "there may be work", and nothing else. They only shorten the wait for the next poll,
 * so one that is lost costs no more than that.
 */
export class Notices {
  readonly #db: Database;
  readonly #channel: string;
  readonly #connectionString: string | undefined;
  readonly #logger: Logger | undefined;
  readonly #watchers = new Set<() => void>();
  #listener: Listener | undefined;
  #timer: NodeJS.Timeout | undefined;
  #again = false;

  constructor(
    db: Database,
    channel: string,
    connectionString: string | undefined,
    logger: Logger | undefined,
  ) {
    this.#db = db;
    this.#channel = channel;
    this.#connectionString = connectionString;
    this.#logger = logger;
  }

  /** @throws ConfigurationError when LISTEN is wanted and the driver is not installed */
  async open(): Promise<void> {
    if (this.#connectionString !== undefined) await loadClient();
  }

  watch(onWake: () => void): () => void {
    if (this.#connectionString === undefined) return () => {};
    const watcher = (): void => onWake();
    this.#watchers.add(watcher);
    this.#listener ??= new Listener(
      this.#connectionString,
      this.#channel,
      () => {
        for (const wake of this.#watchers) wake();
      },
      this.#logger,
    );
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size > 0) return;
      void this.#listener?.close();
      this.#listener = undefined;
    };
  }

  /** Sends at once, then at most one every 50 ms; the last call is never the one that is left out. */
  notify(): void {
    if (this.#connectionString === undefined) return;
    if (this.#timer) {
      this.#again = true;
      return;
    }
    this.#send();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.notify();
    }, coalesceMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#watchers.clear();
    await this.#listener?.close();
    this.#listener = undefined;
  }

  #send(): void {
    this.#db
      .run({ text: "SELECT pg_notify($1::text, '')::text AS sent", params: [this.#channel] })
      .catch((error: unknown) =>
        this.#logger?.warn(`hookwell: a wake-up notice was not sent: ${reason(error)}`),
      );
  }
}

/** One listening connection that comes back after it is lost. */
class Listener {
  readonly #connectionString: string;
  readonly #channel: string;
  readonly #onNotice: () => void;
  readonly #logger: Logger | undefined;
  #client: ListenClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #closed = false;

  constructor(connectionString: string, channel: string, onNotice: () => void, logger: Logger | undefined) {
    this.#connectionString = connectionString;
    this.#channel = channel;
    this.#onNotice = onNotice;
    this.#logger = logger;
    void this.#connect();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#drop();
  }

  async #connect(): Promise<void> {
    try {
      const Client = await loadClient();
      if (this.#closed) return;
      const client = new Client({
        connectionString: this.#connectionString,
        application_name: "hookwell listen",
        // A peer that vanished without a word is noticed by the system instead of never.
        keepAlive: true,
      });
      this.#client = client;
      client.on("error", (error) => this.#lost(client, error));
      client.on("end", () => this.#lost(client, new Error("the connection ended")));
      client.on("notification", () => this.#onNotice());
      await client.connect();
      await client.query(`LISTEN ${this.#channel}`);
      if (this.#closed) return await this.#drop();
      if (this.#failures > 0) this.#logger?.info("hookwell: listening for wake-up notices again.");
      this.#failures = 0;
      // What was committed while nobody listened sent its notice to nobody.
      this.#onNotice();
    } catch (error) {
      this.#lost(this.#client, error);
    }
  }

  #lost(client: ListenClient | undefined, error: unknown): void {
    // The same loss is told by several events; the first one counts.
    if (this.#closed || this.#timer || client !== this.#client) return;
    void this.#drop();
    if (this.#failures === 0)
      this.#logger?.warn(
        `hookwell: lost the listening connection (${reason(error)}); work is found by polling until it is back.`,
      );
    // Spread, because every process lost its connection in the same moment.
    const step = Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.min(this.#failures, 10));
    const wait = step * (0.5 + systemRandomNumber() / 2);
    this.#failures++;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#connect();
    }, wait);
    this.#timer.unref();
  }

  async #drop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    // It may be broken already, and then there is nothing to end.
    await client?.end().catch(() => {});
  }
}

type ClientClass = new (options: {
  connectionString: string;
  application_name: string;
  keepAlive: boolean;
}) => ListenClient;

async function loadClient(): Promise<ClientClass> {
  try {
    // The driver is the application's: only LISTEN needs it by name.
    const { default: pg } = (await import("pg")) as unknown as { default: { Client: ClientClass } };
    return pg.Client;
  } catch (error) {
    const failure = new ConfigurationError(
      "postgresStore({ listen }) opens a connection of its own and needs the package pg: run `npm install pg`, or leave `listen` out and work of other processes is found by polling.",
    );
    failure.cause = error;
    throw failure;
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
