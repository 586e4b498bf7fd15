import type { IncomingMessage } from "node:http";
import { isHookwellError } from "../model/errors.ts";
import { verify, verifyBodySignature } from "../send/verify.ts";
import { printable } from "./terminal/printable.ts";

/** Event ids that were received, the newest 10,000. */
export class SeenWebhooks {
  readonly #times = new Map<string, number>();

  /** How often the id was seen before this time. */
  add(id: string): number {
    const before = this.#times.get(id) ?? 0;
    this.#times.delete(id);
    this.#times.set(id, before + 1);
    if (this.#times.size > 10_000) this.#times.delete(this.#times.keys().next().value!);
    return before;
  }
}

export interface DescribedWebhook {
  readonly lines: readonly string[];
  /** Both signatures are right; undefined = no secret to check with. */
  readonly verified: boolean | undefined;
}

/** What a developer wants to know of a webhook that came in. */
export function describeWebhook(
  request: Pick<IncomingMessage, "method" | "url" | "headers">,
  body: Buffer,
  secrets: readonly string[],
  seen: SeenWebhooks,
): DescribedWebhook {
  const header = (name: string): string => printable(String(request.headers[name] ?? ""));
  const id = header("webhook-id");
  const before = id === "" ? 0 : seen.add(id);
  const lines = [
    "",
    `${request.method} ${printable(request.url ?? "/")}  ${header("x-hookwell-event") || "(no event type)"}`,
    `  event      ${id || "(no webhook-id)"}${before > 0 ? `  REPEAT, seen ${before} time${before > 1 ? "s" : ""} before` : ""}`,
    `  delivery   ${header("x-hookwell-delivery") || "-"}, attempt ${header("x-hookwell-attempt") || "-"}`,
  ];
  let verified: boolean | undefined;
  if (secrets.length > 0) {
    const standard = standardProblem(request, body, secrets);
    const bodySignature = request.headers["x-hookwell-signature"];
    const bodyFits = secrets.some((secret) => verifyBodySignature(body, String(bodySignature ?? ""), secret));
    verified = standard === undefined && bodyFits;
    lines.push(`  standard   ${standard === undefined ? "signature verified" : `NOT VERIFIED: ${standard}`}`);
    lines.push(`  body       ${bodyFits ? "signature verified" : "NOT VERIFIED: no secret fits"}`);
  }
  lines.push(`  ${printable(body.toString("utf8"))}`);
  return { lines, verified };
}

function standardProblem(
  request: Pick<IncomingMessage, "headers">,
  body: Buffer,
  secrets: readonly string[],
): string | undefined {
  try {
    verify(request.headers, body, secrets);
    return undefined;
  } catch (error) {
    if (isHookwellError(error)) return `${error.code}: ${printable(error.message)}`;
    throw error;
  }
}
