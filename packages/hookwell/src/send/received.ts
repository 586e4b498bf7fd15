import type { Socket } from "node:net";

/** What the socket had received when it broke, by the error it broke with. */
const received = new WeakMap<Error, number>();

/** Makes {@link bytesReceivedBefore} know the errors of this socket. */
export function noteBytesReceived(socket: Socket): void {
  socket.on("error", (error: Error) => {
    received.set(error, socket.bytesRead);
  });
}

/** Bytes that the socket had received before this error ended it: above 0, it had carried an answer before. */
export function bytesReceivedBefore(error: Error): number {
  // undici's own errors about a socket carry its numbers; those of the system do not.
  const info = (error as { socket?: { bytesRead?: number } | null }).socket;
  return info?.bytesRead ?? received.get(error) ?? 0;
}
