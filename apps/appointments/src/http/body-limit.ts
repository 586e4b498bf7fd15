import type { Context, MiddlewareHandler } from "hono";

export interface BodyLimitOptions {
  /** Bytes. */
  readonly maxSize: number;
  /** Answers, or throws, for a body that is longer. */
  readonly onError: (context: Context) => Response | Promise<Response>;
}

/**
 * Refuses bodies that are too long, whether or not their length is declared. Hono's own middleware makes its new
 * request from the old one, which fails on this server's requests when there is no Content-Length (curl -X POST).
 */
export function bodyLimit({ maxSize, onError }: BodyLimitOptions): MiddlewareHandler {
  return async (context, next) => {
    const { raw } = context.req;
    if (!raw.body) return next();
    const declared = raw.headers.get("content-length");
    if (declared !== null && !raw.headers.has("transfer-encoding"))
      return Number(declared) > maxSize ? onError(context) : next();
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of raw.body) {
      size += chunk.byteLength;
      if (size > maxSize) return onError(context);
      chunks.push(chunk);
    }
    context.req.raw = new Request(raw.url, {
      method: raw.method,
      headers: raw.headers,
      ...(size === 0 ? {} : { body: Buffer.concat(chunks) }),
    });
    return next();
  };
}
