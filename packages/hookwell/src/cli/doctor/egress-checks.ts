import type { HookwellCore } from "../../publish/surface.ts";
import type { PagePosition } from "../../store/contract.ts";
import type { Terminal } from "../command.ts";
import { Progress } from "../terminal/progress.ts";
import { throwIfStopped } from "../terminal/stopped.ts";
import { type Found, note, problem, well } from "./report.ts";

const mostHosts = 20;
const mostSubscriptions = 1_000;
const atOnce = 4;

/** Connects, as a send would, to the given urls or to where the subscriptions lead. No request is made. */
export async function checkEgress(
  terminal: Terminal,
  hooks: HookwellCore,
  urls: readonly string[],
  say: (found: Found) => void,
): Promise<void> {
  const { origins, more } = urls.length > 0 ? { origins: urls, more: 0 } : await subscribedOrigins(hooks);
  if (origins.length === 0)
    return say(note("egress", "There is no subscription to connect to.", "Give --url to try one."));
  const progress = new Progress(terminal, "hosts tried");
  const found: Found[] = [];
  for (let from = 0; from < origins.length; from += atOnce) {
    throwIfStopped(terminal);
    const some = origins.slice(from, from + atOnce);
    found.push(...(await Promise.all(some.map((url) => connect(hooks, url)))));
    progress.update(Math.min(from + atOnce, origins.length), origins.length);
  }
  progress.end();
  for (const each of found) say(each);
  if (more > 0) say(note("egress", `${more} more hosts were not tried.`, "Give --url to try one of them."));
}

async function connect(hooks: HookwellCore, url: string): Promise<Found> {
  const trial = await hooks.tryConnection(url);
  // A url may hold a token in its path or query.
  const host = URL.canParse(url) ? new URL(url).origin : "The url";
  if (!trial) return note("egress", `${host} was not tried: the instance has a sender of its own.`);
  if (trial.ok) return well("egress", `${host} can be connected to (${trial.ms} ms).`);
  return problem("egress", `${host}: ${trial.message} (${trial.code}).`, adviceFor(trial.code));
}

function adviceFor(code: string): string {
  const known: Readonly<Record<string, string>> = {
    dns_failed: "Is the name right, and does this machine have a resolver that knows it?",
    blocked_address:
      "HOOKWELL_ALLOW_NETWORKS opens a network that is not public; --dev this machine, for development.",
    connect_refused: "Nothing listens there, or a firewall refuses.",
    connect_timeout: "A firewall on the way drops the connection, or the host is away.",
    unreachable: "This machine has no route there.",
    tls_expired: "Its owner must renew the certificate.",
    tls_untrusted: "A private authority is trusted with NODE_EXTRA_CA_CERTS.",
    tls_wrong_host: "Its owner must serve a certificate for this name.",
  };
  return `${known[code] ?? "An attempt would fail alike."} docs/reference/errors.md has more.`;
}

/** The hosts of the subscriptions that are sent to, each once, the newest subscriptions first. */
async function subscribedOrigins(
  hooks: HookwellCore,
): Promise<{ readonly origins: readonly string[]; readonly more: number }> {
  const origins = new Set<string>();
  let after: PagePosition | undefined;
  let looked = 0;
  do {
    const page: Awaited<ReturnType<typeof hooks.subscriptions.list>> = await hooks.subscriptions.list(
      { status: "active" },
      { limit: 100, ...(after && { after }) },
    );
    for (const { url } of page.items) origins.add(new URL(url).origin);
    looked += page.items.length;
    after = page.next;
  } while (after && looked < mostSubscriptions);
  const all = [...origins];
  return { origins: all.slice(0, mostHosts), more: Math.max(0, all.length - mostHosts) };
}
