import { randomUUID } from "node:crypto";
import {
  type RequestBegin,
  type RequestBegun,
  type RequestName,
  requestsKeptMs,
} from "../request-contract.ts";
import type { MemoryState } from "./state.ts";

export interface RequestRow extends RequestName {
  readonly fingerprint: string;
  readonly token: string;
  readonly beganAt: number;
  readonly leaseUntil: number;
  readonly answer?: string;
}

export function beginRequest(state: MemoryState, request: RequestBegin, now: number): RequestBegun {
  const { owner, key, fingerprint, leaseMs, repeatable } = request;
  const known = state.requests.get(requestKey(request));
  const row = known && known.beganAt > now - requestsKeptMs ? known : undefined;
  if (row) {
    if (row.fingerprint !== fingerprint) return { state: "different" };
    if (row.answer !== undefined) return { state: "answered", answer: row.answer };
    if (row.leaseUntil > now) return { state: "running" };
    if (!repeatable) return { state: "lost", beganAt: new Date(row.beganAt) };
  }
  const token = randomUUID();
  const beganAt = row?.beganAt ?? now;
  state.requests.set(requestKey(request), {
    owner,
    key,
    fingerprint,
    token,
    beganAt,
    leaseUntil: now + leaseMs,
  });
  return { state: "begun", token, beganAt: new Date(beganAt) };
}

export function finishRequest(state: MemoryState, name: RequestName, token: string, answer: string): boolean {
  const row = state.requests.get(requestKey(name));
  if (!row || row.token !== token || row.answer !== undefined) return false;
  state.requests.set(requestKey(name), { ...row, answer });
  return true;
}

export function abandonRequest(state: MemoryState, name: RequestName, token: string): void {
  const row = state.requests.get(requestKey(name));
  if (row?.token === token && row.answer === undefined) state.requests.delete(requestKey(name));
}

/** The oldest that are over; answers how many went. */
export function pruneRequests(state: MemoryState, limit: number, now: number): number {
  const over = [...state.requests.values()]
    .filter((row) => row.beganAt <= now - requestsKeptMs)
    .sort((a, b) => a.beganAt - b.beganAt)
    .slice(0, limit);
  for (const row of over) state.requests.delete(requestKey(row));
  return over.length;
}

function requestKey({ owner, key }: RequestName): string {
  return JSON.stringify([owner, key]);
}
