export interface BannerFacts {
  readonly url: string;
  readonly database: string;
  readonly worker: boolean;
  /** The admin key when this start made it; it is shown this once. */
  readonly newKey?: string;
  /** A user that the three commands are about. */
  readonly userId: string;
  /** Absent when there is no example; without a link when an earlier start showed it. */
  readonly example?: { readonly eventTypeSlug: string; readonly link?: string };
  /** When a new invitation that somebody makes with the printed command is to expire, RFC 3339. */
  readonly expiresAt: string;
}

/** What `npm start` prints when it is ready. */
export function banner(facts: BannerFacts): string {
  const { url, newKey } = facts;
  const lines = [
    "",
    `Appointments is running, with Hookwell beside it in ${facts.database}.`,
    "Development mode: webhooks may go to loopback addresses and over plain http.",
    ...(facts.worker
      ? []
      : [
          "Dispatcher and worker are off (HOOKWELL_WORKER=off). To run them beside this:",
          "  npm run hookwell -- worker --config apps/appointments/src/hookwell.config.ts",
        ]),
    "",
    `  Received webhooks   ${url}/receiver`,
    `  Application API     ${url}/v1/users`,
    `  Hookwell API        ${url}/hookwell/v1/subscriptions   (described at ${url}/hookwell/docs)`,
    `  Health              ${url}/healthz`,
    "",
    ...(newKey === undefined
      ? ["The commands below want your admin key in the variable HOOKWELL_API_KEY of the shell."]
      : ["Admin key, for both APIs. It is shown this once; keep it:", "", `  ${newKey}`]),
    "",
    "Three commands that create, change and deactivate a user. Their webhooks appear on the receiver page:",
    "",
    ...commands(facts).map((command) => `${command}\n`),
    ...exampleLines(facts),
    "Stop with Ctrl-C.",
  ];
  return lines.join("\n");
}

function exampleLines(facts: BannerFacts): string[] {
  const { example, url } = facts;
  if (example === undefined) return [];
  const what = `Book, move and cancel there, and the receiver page shows it, at ${url}/receiver`;
  if (example.link !== undefined)
    return [
      "An invitation to an appointment. Its link is shown this once; keep it, and open it in a browser:",
      "",
      `  ${example.link}`,
      "",
      what,
      "",
    ];
  return [
    "The link of the example invitation was shown by the start that made it, and is not shown again. This makes",
    "another one, with its link as scheduling_url in the answer:",
    "",
    `  ${invite(facts, example.eventTypeSlug)}`,
    "",
    what,
    "",
  ];
}

function invite(facts: BannerFacts, slug: string): string {
  const body = {
    event_type_slug: slug,
    recipient: { name: "Grace Hopper", email: `grace.${facts.userId.slice(0, 8)}@example.com` },
    expires_at: facts.expiresAt,
  };
  return curl(facts, `${json} -d '${JSON.stringify(body)}' ${facts.url}/v1/scheduling-invitations`);
}

const json = "-H 'Content-Type: application/json'";

function curl({ newKey }: BannerFacts, rest: string): string {
  const key =
    newKey === undefined ? '"Authorization: Bearer $HOOKWELL_API_KEY"' : `'Authorization: Bearer ${newKey}'`;
  return `curl -sS -w '\\n' -H ${key} ${rest}`;
}

/** Each is one line that works on its own, in this order: the user's id is chosen here, not answered. */
export function commands(facts: BannerFacts): string[] {
  const { url, userId } = facts;
  const email = `ada.${userId.slice(0, 8)}@example.com`;
  return [
    curl(facts, `${json} -d '{"id":"${userId}","email":"${email}","name":"Ada Lovelace"}' ${url}/v1/users`),
    curl(facts, `${json} -X PATCH -d '{"name":"Ada King"}' ${url}/v1/users/${userId}`),
    curl(facts, `-X POST ${url}/v1/users/${userId}/suspend`),
  ];
}
