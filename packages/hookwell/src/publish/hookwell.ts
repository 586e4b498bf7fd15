import type { AsyncTxAdapter, SyncTxAdapter, TxAdapter } from "../adapters/seam.ts";
import type { EventShapes } from "./define-events.ts";
import type { TenantMode } from "./prepare-event.ts";
import type { EmitOptions, EmitResult, HookwellCore } from "./surface.ts";

/** The adapter of an application's client, or none. */
export type AnyAdapter = TxAdapter<unknown> | undefined;

/** The transactions that asynchronous calls may join: none of a synchronous client's. */
export type AsyncTxOf<Adapter> = Adapter extends AsyncTxAdapter<infer Tx> ? Tx : never;

/** A tenant is required where tenants are, but for broadcast types. */
type TenantOf<Tenants extends TenantMode, Broadcast extends boolean> = Tenants extends "required"
  ? Broadcast extends true
    ? unknown
    : { readonly tenantId: string }
  : unknown;

type Facts<Shapes extends EventShapes, Tenants extends TenantMode, Type extends keyof Shapes> = Omit<
  EmitOptions<never>,
  "tx"
> &
  TenantOf<Tenants, Shapes[Type]["broadcast"]>;

/** One of several events captured together. */
export type EmitItem<Shapes extends EventShapes, Tenants extends TenantMode> = {
  readonly [Type in keyof Shapes]: { readonly type: Type; readonly data: Shapes[Type]["data"] } & Facts<
    Shapes,
    Tenants,
    Type
  >;
}[keyof Shapes];

/** What `createHookwell` gives. Types and data of the emits are those of `defineEvents`. */
export interface Hookwell<Tx, Shapes extends EventShapes, Tenants extends TenantMode>
  extends HookwellCore<Tx> {
  /**
   * Captures an event in the transaction `tx`: it exists if, and only if, that transaction commits. No network
   * I/O. The same id with the same content writes nothing and answers `duplicate: true`.
   * @throws NotInTransactionError, UnknownEventTypeError, EventSchemaError, InvalidIdentifierError,
   * RevisionConflictError, EventMismatchError, PayloadTooLargeError: nothing was written, and the transaction
   * may go on.
   */
  emit<Type extends keyof Shapes & string>(
    type: Type,
    data: Shapes[Type]["data"],
    options: Facts<Shapes, Tenants, Type> & { readonly tx: Tx | "own" },
  ): Promise<EmitResult>;
  /** Captures all of the events, or none with the error of the first that was refused. */
  emitMany(
    events: readonly EmitItem<Shapes, Tenants>[],
    options: { readonly tx: Tx | "own" },
  ): Promise<EmitResult[]>;
}

/** What `createHookwell` gives for a client whose calls return when they are done: SQLite handles. */
export interface SyncHookwell<SyncTx, Shapes extends EventShapes, Tenants extends TenantMode>
  extends Hookwell<never, Shapes, Tenants> {
  /** {@link Hookwell.emit} inside a synchronous transaction. It throws, so that the transaction rolls back. @throws AsyncSchemaError */
  emitSync<Type extends keyof Shapes & string>(
    type: Type,
    data: Shapes[Type]["data"],
    options: Facts<Shapes, Tenants, Type> & { readonly tx: SyncTx },
  ): EmitResult;
  /**
   * BEGIN IMMEDIATE, `fn`, COMMIT; ROLLBACK when `fn` throws. A function that returns a promise is refused and
   * rolled back: during an await, statements of other requests would join the transaction.
   */
  transaction<Database extends SyncTx, T>(
    database: Database,
    fn: (tx: Database) => T extends PromiseLike<unknown> ? never : T,
  ): T;
}

/** The surface that fits an adapter. */
export type HookwellFor<Adapter, Shapes extends EventShapes, Tenants extends TenantMode> =
  Adapter extends SyncTxAdapter<infer SyncTx>
    ? SyncHookwell<SyncTx, Shapes, Tenants>
    : Hookwell<AsyncTxOf<Adapter>, Shapes, Tenants>;
