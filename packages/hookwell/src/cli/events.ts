import type { DeliveryRecord } from "../model/delivery.ts";
import type { EventOutcome, EventRecord } from "../model/event.ts";
import { deliveryToJson, encodeCursor, eventToJson } from "../publish/api-json.ts";
import type { HookwellCore } from "../publish/surface.ts";
import type { PageOf } from "../store/contract.ts";
import { readArguments, readChoice } from "./arguments.ts";
import { type Command, exitCode, type Terminal } from "./command.ts";
import { deliveryColumns } from "./delivery-columns.ts";
import { commandHelp } from "./help.ts";
import { listOrOne } from "./list-or-one.ts";
import { printJson, printList, readListFlags } from "./lists.ts";
import {
  databaseOptions,
  jsonOption,
  type Options,
  pageOptions,
  placeOptions,
  timeOptions,
} from "./options.ts";
import { type Column, printRecord, Table } from "./terminal/table.ts";
import { readRange, shortTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

const outcomes = [
  "unmatched",
  "held",
  "pending",
  "delivered",
  "failed",
  "cancelled",
  "parked",
] as const satisfies readonly EventOutcome[];

const options = {
  id: { type: "string", value: "<id>", help: "with this id, in any project" },
  type: { type: "string", value: "<type>", help: "of this type" },
  subject: { type: "string", value: "<text>", help: "about this subject" },
  ...placeOptions,
  outcome: { type: "string", value: "<outcome>", help: outcomes.join(", ") },
  ...timeOptions,
  ...pageOptions,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "list events, or show one with its deliveries";

export const events: Command = {
  name: "events",
  summary,
  options,
  help: commandHelp({
    name: "events",
    summary,
    usage: [
      ["events [filters]", "newest first; --since and --until are about when it was captured"],
      ["events <id> [--project <id>]", "one: its data, and every delivery of it"],
    ],
    options,
    notes: [
      "Outcomes: unmatched (no subscription takes it), pending (not dispatched yet, or on its way), held (waits for a paused or disabled subscription, or for the end of a `hookwell hold`), delivered (to all that are left), failed and cancelled (at least one was), parked (could not be dispatched: see `hookwell events release`). `hookwell events explain <id>` says why a subscription did not get one.",
      "  hookwell events --outcome parked\n  hookwell events --type booking.created --since 2026-01-31T00:00:00Z --all --json",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = listOrOne(positionals, flags, "an event", ["release", "explain"]);
    readListFlags(flags);
    const outcome = readChoice(flags.outcome, "--outcome", outcomes);
    return withHooks(terminal, flags, async (hooks) => {
      if (id === undefined) {
        const filter = {
          id: flags.id,
          type: flags.type,
          subject: flags.subject,
          projectId: flags.project,
          tenantId: flags.tenant,
          outcome,
          ...readRange(flags, hooks.clock()),
        };
        await printList(terminal, flags, {
          fetch: (page) => hooks.events.list(filter, page),
          toJson: eventToJson,
          columns,
          none: "No event matches.",
        });
      } else await showEvent(terminal, hooks, id, flags);
      return exitCode.ok;
    });
  },
};

type EventWithOutcome = EventRecord & { readonly outcome: EventOutcome };

const columns: readonly Column<EventWithOutcome>[] = [
  { name: "EVENT", value: ({ id }) => id },
  { name: "OUTCOME", value: ({ outcome }) => outcome },
  { name: "TYPE", value: ({ type }) => type },
  { name: "CAPTURED", value: ({ capturedAt }) => shortTime(capturedAt) },
  { name: "SUBJECT", value: ({ subject }) => subject },
  { name: "REV", value: ({ revision }) => revision },
  { name: "PROJECT", value: ({ projectId }) => projectId },
  { name: "TENANT", value: ({ tenantId }) => tenantId },
];

/** As `GET /v1/events/{id}` answers it. */
export async function showEvent(
  terminal: Terminal,
  hooks: HookwellCore,
  id: string,
  flags: { readonly project?: string; readonly json?: boolean },
): Promise<void> {
  const record = await hooks.events.get(id, { projectId: flags.project });
  const page = await hooks.deliveries.list({ projectId: record.projectId, eventId: id }, { limit: 100 });
  if (flags.json)
    printJson(terminal, {
      ...eventToJson(record),
      deliveries: page.items.map(deliveryToJson),
      deliveries_cursor: page.next ? encodeCursor(page.next) : null,
    });
  else printEvent(terminal, record, page);
}

function printEvent(terminal: Terminal, record: EventWithOutcome, page: PageOf<DeliveryRecord>): void {
  const { error } = eventToJson(record);
  printRecord(terminal, [
    ["event", record.id],
    ["type", record.type],
    ["outcome", record.outcome],
    ["state", record.state],
    ["error", error],
    ["project", record.projectId],
    ["tenant", record.tenantId],
    ["subject", record.subject],
    ["revision", record.revision],
    ["actor", record.actor && `${record.actor.type}:${record.actor.id}`],
    ["audience", record.audience?.join(", ")],
    ["occurred", shortTime(record.occurredAt)],
    ["captured", shortTime(record.capturedAt)],
    ["data", record.data],
  ]);
  if (page.items.length > 0) terminal.print("");
  new Table(terminal, deliveryColumns).print(page.items);
  if (page.next)
    terminal.note(
      `There are more: hookwell deliveries --event ${record.id} --cursor ${encodeCursor(page.next)}`,
    );
}
