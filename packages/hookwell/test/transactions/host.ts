import { defineEvents, type EmitResult, type OutboxStore } from "hookwell";
import { z } from "zod";

const schema = z.object({ id: z.string(), note: z.string().optional() });
export const events = defineEvents({
  "account.opened": { schema, subject: (data) => `account:${data.id}` },
  "account.closed": { schema, fanOut: "emit" },
});

export interface Facts {
  readonly id?: string;
  readonly revision?: number;
}
export type Emit = (
  tx: unknown,
  type: "account.opened" | "account.closed",
  data: { readonly id: string; readonly note?: string },
  facts?: Facts,
) => Promise<EmitResult>;

/** An application with its own table, on one client library, with Hookwell in the same database. */
export interface Host {
  readonly store: OutboxStore;
  readonly emit: Emit;
  /** BEGIN, `fn`, COMMIT; ROLLBACK when it throws. */
  transaction<T>(fn: (tx: unknown) => Promise<T>): Promise<T>;
  /** A part of a transaction that is undone alone when it throws. */
  savepoint(tx: unknown, fn: (tx: unknown) => Promise<void>): Promise<void>;
  /** Opens an account. @throws when it exists */
  insert(tx: unknown, id: string): Promise<void>;
  /** Runs SQL of the application. */
  exec(tx: unknown, text: string): Promise<void>;
  /** Ids of the committed accounts. */
  accounts(): Promise<string[]>;
  /** Things of the client library that are no open transaction. */
  outside(): Promise<unknown[]>;
  close(): Promise<void>;
}

export interface HostKind {
  readonly name: string;
  /** Transactions of one process run side by side, and not one after the other. */
  readonly concurrent: boolean;
  open(): Promise<Host>;
}

export const encryptionKeys = `k1:${Buffer.alloc(32, 7).toString("base64")}`;
export const quiet = { info: () => {}, warn: () => {}, error: () => {} };
export const createTable = `
CREATE TABLE account (id text PRIMARY KEY);
CREATE TABLE card (account_id text REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED)`;
export const insertAccount = "INSERT INTO account (id) VALUES ";

export interface Tables {
  account: { id: string };
}
