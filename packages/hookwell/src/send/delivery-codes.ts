/** One stable error code of a failed attempt, for docs/reference/errors.md. */
export interface DeliveryCode {
  readonly code: string;
  readonly meaning: string;
  readonly advice: string;
}

/**
 * Every code that an attempt can fail with, but those of an HTTP answer. Public: never renamed, only added to.
 * Each is retried on the schedule.
 */
export const deliveryCodes = [
  {
    code: "dns_failed",
    meaning: "The name of the endpoint does not resolve, or the resolver did not answer in time.",
    advice: "Check the spelling of the host and its DNS records.",
  },
  {
    code: "connect_refused",
    meaning: "No program listens on the port of the endpoint.",
    advice: "Start the receiver, or correct the port.",
  },
  {
    code: "connect_timeout",
    meaning: "No connection was ready within 5 s: no answer to TCP, or a TLS handshake that stalled.",
    advice: "Check firewalls in front of the receiver and whether it is overloaded.",
  },
  {
    code: "unreachable",
    meaning: "The network has no way to the address of the endpoint.",
    advice: "Check the routing of this machine and the address that the name resolves to.",
  },
  {
    code: "timeout",
    meaning: "The exchange did not end within 15 s, and no status had come.",
    advice: "Answer 2xx first and do the work afterwards.",
  },
  {
    code: "tls_expired",
    meaning: "The certificate has expired, or is not valid yet.",
    advice: "Renew the certificate of the receiver; check the clocks of both machines.",
  },
  {
    code: "tls_untrusted",
    meaning: "The certificate is self-signed, or its issuer is not trusted here.",
    advice:
      "Install a certificate of a public authority with its intermediate ones, or trust a private authority through NODE_EXTRA_CA_CERTS.",
  },
  {
    code: "tls_wrong_host",
    meaning: "The certificate belongs to another name than the url's.",
    advice: "Use a name the certificate covers, or add the name to it.",
  },
  {
    code: "tls_failed",
    meaning: "The TLS handshake failed for another reason, such as no protocol in common.",
    advice: "Check that the port speaks TLS 1.2 or newer.",
  },
  {
    code: "blocked_address",
    meaning: "The address guard refused where the url leads; nothing was sent.",
    advice: "Use a public https address, or have an operator open the network with HOOKWELL_ALLOW_NETWORKS.",
  },
  {
    code: "reset",
    meaning: "The connection was closed before an answer came.",
    advice: "Look for a crash or a restart in the receiver's log; a proxy may limit what it accepts.",
  },
  {
    code: "invalid_response",
    meaning: "What came back is not an HTTP/1.1 answer, or its headers are larger than 16 KiB.",
    advice: "Check what listens on that port and whether it speaks plain HTTP where TLS is expected.",
  },
  {
    code: "invalid_request",
    meaning: "The request could not be built from the stored url, headers or secret; nothing was sent.",
    advice: "Correct the url, the headers or the secret of the subscription.",
  },
  {
    code: "network_error",
    meaning: "The network failed in another way; the message has the system's code.",
    advice: "Look the code up; most of these pass by themselves.",
  },
] as const satisfies readonly DeliveryCode[];

/** How the statuses of HTTP answers appear: one code for each status, explained by its class. */
export const httpCodes: readonly DeliveryCode[] = [
  {
    code: "http_3xx",
    meaning: "The endpoint redirects (`http_301`, `http_308`, …). Redirects are not followed.",
    advice: "Put the final address into the subscription.",
  },
  {
    code: "http_410",
    meaning: "The endpoint is gone: the subscription is disabled and what waits for it is cancelled.",
    advice: "Enable the subscription again when that was a mistake.",
  },
  {
    code: "http_4xx",
    meaning:
      "The endpoint refused the request (`http_401`, `http_404`, `http_429`, …). Retried like every failure.",
    advice: "Check route, authentication and signature check of the receiver.",
  },
  {
    code: "http_5xx",
    meaning: "The endpoint failed (`http_500`, `http_503`, …).",
    advice: "Look into the receiver's log.",
  },
];

/** Codes that no exchange gives. */
export const otherCodes: readonly DeliveryCode[] = [
  {
    code: "worker_lost",
    meaning:
      "Every allowed attempt was begun by a worker that never reported how it ended; the delivery failed, and whether the receiver got it is not known.",
    advice: "Look for crashes or kills of the worker, then retry the delivery.",
  },
  {
    code: "unreadable",
    meaning: "The stored body or endpoint of the delivery is missing or damaged; it failed unsent.",
    advice: "Look for what changed the database from outside, and restore it from a backup.",
  },
  {
    code: "send_failed",
    meaning: "A sender of the application's own failed without saying more.",
    advice: "Read the message; have the sender throw a DeliveryError with a code.",
  },
];

/** A code of {@link deliveryCodes}. */
export type TransportCode = (typeof deliveryCodes)[number]["code"];
