import type { TransportCode } from "./delivery-codes.ts";
import { oneLine } from "./excerpt.ts";

/** Why no answer came: a stable code, and a sentence without secrets, queries or addresses of inner networks. */
export class TransportFailure extends Error {
  readonly code: TransportCode;
  constructor(code: TransportCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TransportFailure";
    this.code = code;
  }
}

const bySystemCode: Readonly<Record<string, readonly [TransportCode, string]>> = {
  ECONNREFUSED: ["connect_refused", "refused the connection"],
  ETIMEDOUT: ["connect_timeout", "did not answer the connection"],
  EHOSTUNREACH: ["unreachable", "cannot be reached from this machine"],
  ENETUNREACH: ["unreachable", "cannot be reached from this machine"],
  EADDRNOTAVAIL: ["unreachable", "cannot be reached from this machine"],
  ENOTFOUND: ["dns_failed", "does not resolve to an address"],
  EAI_AGAIN: ["dns_failed", "could not be looked up: the resolver did not answer"],
  ECONNRESET: ["reset", "closed the connection before it answered"],
  EPIPE: ["reset", "closed the connection before it answered"],
  UND_ERR_SOCKET: ["reset", "closed the connection before it answered"],
  UND_ERR_CONNECT_TIMEOUT: ["connect_timeout", "did not answer the connection"],
  UND_ERR_HEADERS_TIMEOUT: ["timeout", "did not answer in time"],
  UND_ERR_BODY_TIMEOUT: ["timeout", "did not answer in time"],
  UND_ERR_HEADERS_OVERFLOW: ["invalid_response", "answered with headers that are too large"],
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: ["invalid_response", "answered with a wrong content-length"],
  UND_ERR_INVALID_ARG: ["invalid_request", "could not be sent a request: its url or a header is malformed"],
};

const expired = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
const untrusted = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "CERT_REJECTED",
  "CERT_REVOKED",
  "CERT_CHAIN_TOO_LONG",
  "INVALID_CA",
  "INVALID_PURPOSE",
  "PATH_LENGTH_EXCEEDED",
]);

/** What an error of the system or of undici means. `host` is host and port, for the message. */
export function transportFailure(error: unknown, host: string): TransportFailure {
  if (error instanceof TransportFailure) return error;
  const code = systemCode(error);
  const tls = tlsFailure(error, code, host);
  if (tls) return tls;
  if (isNotHttp(error, code))
    return new TransportFailure("invalid_response", `${host} did not answer in HTTP/1.1`, { cause: error });
  const known = bySystemCode[code];
  return known
    ? new TransportFailure(known[0], `${host} ${known[1]}`, { cause: error })
    : new TransportFailure("network_error", `The exchange with ${host} failed (${code})`, { cause: error });
}

/** undici says "bad response" or "bad upgrade" for answers that are HTTP, but not allowed here. */
function isNotHttp(error: unknown, code: string): boolean {
  if (code.startsWith("HPE_") || code === "HTTPParserError") return true;
  return error instanceof Error && code === "UND_ERR_SOCKET" && error.message.startsWith("bad");
}

function tlsFailure(error: unknown, code: string, host: string): TransportFailure | undefined {
  const options = { cause: error };
  if (expired.has(code))
    return new TransportFailure(
      "tls_expired",
      `The certificate of ${host} ${code === "CERT_HAS_EXPIRED" ? "has expired" : "is not valid yet"}`,
      options,
    );
  if (untrusted.has(code))
    return new TransportFailure(
      "tls_untrusted",
      `The certificate of ${host} is not trusted (${code})`,
      options,
    );
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const reason = (error as { reason?: unknown }).reason;
    const detail = typeof reason === "string" ? `: ${oneLine(reason, 200)}` : "";
    return new TransportFailure("tls_wrong_host", `The certificate is not for ${host}${detail}`, options);
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_"))
    return new TransportFailure("tls_failed", `The TLS handshake with ${host} failed (${code})`, options);
  return undefined;
}

/** The code of an error, or its name. */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  if (typeof code === "string") return code;
  return error instanceof Error ? error.name : typeof error;
}
