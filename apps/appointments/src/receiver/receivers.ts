/** A receiver on this application's own page: webhooks are posted to `/receiver/hooks/<name>`. */
export interface ReceiverDefinition {
  readonly name: string;
  readonly description: string;
  readonly eventTypes: readonly string[];
  /** Its subscription belongs to the first admin: events with an audience reach owners only. */
  readonly owned: boolean;
}

export const receivers: readonly ReceiverDefinition[] = [
  { name: "users", description: "Receiver page: users", eventTypes: ["user.*"], owned: false },
  {
    name: "bookings",
    description: "Receiver page: bookings of the first admin",
    eventTypes: ["booking.*", "scheduling_invitation.*"],
    owned: true,
  },
];

export const receiverPath = "/receiver";

/** Where Hookwell sends the webhooks of a receiver. */
export function receiverUrl(origin: string, name: string): string {
  return `${origin}${receiverPath}/hooks/${name}`;
}

/** Finds a receiver's subscription again, whatever became of its url. */
export function receiverExternalId(name: string): string {
  return `receiver-page:${name}`;
}
