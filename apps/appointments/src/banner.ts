export interface BannerFacts {
  readonly url: string;
  readonly database: string;
  readonly worker: boolean;
  /** The admin key when this start made it; it is shown this once. */
  readonly newKey?: string;
  /** A user that the three commands are about. */
  readonly userId: string;
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
    "Stop with Ctrl-C.",
  ];
  return lines.join("\n");
}

/** Each is one line that works on its own, in this order: the user's id is chosen here, not answered. */
export function commands({ url, newKey, userId }: BannerFacts): string[] {
  const key =
    newKey === undefined ? '"Authorization: Bearer $HOOKWELL_API_KEY"' : `'Authorization: Bearer ${newKey}'`;
  const curl = (rest: string): string => `curl -sS -w '\\n' -H ${key} ${rest}`;
  const json = "-H 'Content-Type: application/json'";
  const email = `ada.${userId.slice(0, 8)}@example.com`;
  return [
    curl(`${json} -d '{"id":"${userId}","email":"${email}","name":"Ada Lovelace"}' ${url}/v1/users`),
    curl(`${json} -X PATCH -d '{"name":"Ada King"}' ${url}/v1/users/${userId}`),
    curl(`-X POST ${url}/v1/users/${userId}/suspend`),
  ];
}
