// The example of packages/hookwell/README.md: a subscription, and how its receiver checks what it gets.
import { type HookwellCore, type IncomingHeaders, verify } from "hookwell";

export async function subscribe(hooks: HookwellCore): Promise<string> {
  const { secret } = await hooks.subscriptions.create({
    url: "https://example.com/hooks",
    eventTypes: ["user.*"],
  });
  return secret;
}

export function check(request: { headers: IncomingHeaders }, rawBody: Uint8Array, secret: string): unknown {
  const { id, payload } = verify(request.headers, rawBody, secret);
  return { id, payload };
}
