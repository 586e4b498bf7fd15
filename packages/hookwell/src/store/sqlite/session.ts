import { type Program, runProgramSync } from "../../adapters/seam.ts";
import { type Clock, systemClock } from "../../model/clock.ts";
import { StorageError } from "../../model/errors.ts";
import { type IdFunc, idFunc, systemRandom } from "../../model/ids.ts";
import type { Now, Scope } from "../contract.ts";
import type { KeyRing } from "../sealing.ts";
import { Connection } from "./connection.ts";
import { EndpointCache } from "./endpoints.ts";
import { Host } from "./host.ts";
import { Keys } from "./keys.ts";
import { Endpoints } from "./last-look.ts";
import { SqliteMigrations } from "./migrations.ts";
import type { SqliteOptions } from "./options.ts";
import type { Making } from "./subscriptions.ts";

/** Our connection with what belongs to it: opened when first needed, schema and keys checked. */
export class Session {
  readonly connection: Connection;
  readonly migrations: SqliteMigrations;
  readonly endpoints: Endpoints;
  readonly host: Host;
  readonly #keys: Keys;
  readonly #clock: Clock;
  readonly #newEndpointId: IdFunc;
  readonly #migrate: boolean;
  #ring: KeyRing | undefined;
  #opening: Promise<void> | undefined;
  #closed = false;

  constructor(options: SqliteOptions) {
    const { path, logger, now = systemClock, patienceMs, timers, randomNumber } = options;
    this.#clock = now;
    this.#migrate = options.migrate ?? false;
    this.#newEndpointId = options.idFunc ?? idFunc("end_", now, systemRandom);
    const { open } = options;
    this.connection = new Connection(path, {
      ...(patienceMs !== undefined && { patienceMs }),
      ...(timers && { timers }),
      ...(randomNumber && { random: randomNumber }),
      ...(open && { open }),
    });
    this.migrations = new SqliteMigrations(this.connection, now);
    this.#keys = new Keys(options.encryptionKeys ?? process.env.HOOKWELL_ENCRYPTION_KEYS, path, logger);
    this.endpoints = new Endpoints(this.connection, () => this.#ring!, new EndpointCache());
    this.host = new Host(this.connection.openHandle, logger);
  }

  async open({ withKeys }: { readonly withKeys: boolean }): Promise<void> {
    this.#closed = false;
    await this.ready();
    await this.migrations.require();
    if (!withKeys) return;
    if (this.#ring) runProgramSync(this.#keys.ring(), this.connection.run);
    else await this.readyWithKeys();
  }

  close(): void {
    this.connection.close();
    this.#opening = undefined;
    this.#closed = true;
  }

  /** Methods open the store by themselves, without asking for keys that they do not need. */
  async ready(): Promise<Connection> {
    if (this.#closed) throw new StorageError(`The store of ${this.connection.path} was closed.`);
    this.#opening ??= this.#openOnce().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    await this.#opening;
    return this.connection;
  }

  async #openOnce(): Promise<void> {
    if (this.#migrate) await this.migrations.migrate();
    // Before connecting, which would make a file that is not there.
    await this.migrations.require();
    await this.connection.connect();
  }

  async readyWithKeys(): Promise<Connection> {
    const connection = await this.ready();
    await this.ring();
    return connection;
  }

  /** Runs `work` in a transaction of our own, with the keys. */
  async sealing<T>(work: (connection: Connection, ring: KeyRing) => T): Promise<T> {
    const connection = await this.readyWithKeys();
    return connection.write(() => work(connection, this.#ring!));
  }

  /** Whether the keys open what is sealed; makes none and leaves no check value. @throws EncryptionKeyError */
  async checkKeys(): Promise<"usable" | "unused"> {
    const connection = await this.ready();
    return runProgramSync(this.#keys.known(), connection.run) ? "usable" : "unused";
  }

  /** The keys, made known in the database. @throws EncryptionKeyError */
  async ring(): Promise<KeyRing> {
    const connection = await this.ready();
    this.#ring ??= await connection.write(() => runProgramSync(this.#keys.ring(), connection.run));
    return this.#ring;
  }

  /** The given time, or the store's clock. */
  now(now: Now): number {
    return (now ?? this.#clock()).getTime();
  }

  get keys(): Keys {
    return this.#keys;
  }

  /** What a program that makes an endpoint version needs. */
  making(): Making {
    return { keys: this.#keys, endpointId: this.#newEndpointId(), now: this.now(null) };
  }

  /** Runs a program in a transaction of our own. */
  async own<T>(program: () => Program<T>): Promise<T> {
    const connection = await this.ready();
    return connection.write(() => runProgramSync(program(), connection.run));
  }

  /** Runs a program in the scope's transaction. Of a synchronous scope all is done before this returns. */
  async join<T>(scope: Scope, program: () => Program<T>): Promise<T> {
    if (scope.kind === "own") return this.own(program);
    return scope.kind === "sync" ? this.host.runSync(scope, program()) : this.host.run(scope, program());
  }
}
