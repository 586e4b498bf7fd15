import type { DeliveryDetail } from "../model/delivery.ts";
import { deliveryDetailToJson, deliveryToJson } from "../publish/api-json.ts";
import { readArguments } from "./arguments.ts";
import { type Command, exitCode, type Terminal } from "./command.ts";
import { deliveryColumns, deliveryState } from "./delivery-columns.ts";
import { deliveryFilterOptions, readDeliveryFilter } from "./delivery-filter.ts";
import { commandHelp } from "./help.ts";
import { listOrOne } from "./list-or-one.ts";
import { printJson, printList, readListFlags } from "./lists.ts";
import { databaseOptions, jsonOption, type Options, pageOptions } from "./options.ts";
import { printRecord, Table } from "./terminal/table.ts";
import { shortTime } from "./times.ts";
import { withHooks } from "./with-hooks.ts";

const options = {
  status: { type: "string", value: "<status>", help: "pending, delivered, failed or cancelled" },
  ...deliveryFilterOptions,
  ...pageOptions,
  ...databaseOptions,
  ...jsonOption,
} as const satisfies Options;

const summary = "list deliveries, or show one with its body and attempts";

export const deliveries: Command = {
  name: "deliveries",
  summary,
  options,
  help: commandHelp({
    name: "deliveries",
    summary,
    usage: [
      ["deliveries [filters]", "newest first; --since and --until are about when it was made"],
      ["deliveries <id>", "one: the body as sent, every attempt, and why it waits"],
    ],
    options,
    notes: [
      "A pending delivery that is not sent says why behind its status: paused, disabled, held (by `hookwell hold`), circuit_open, rate_limited, ordering, retry_after. docs/reference/errors.md has what to do for each error code.",
      "  hookwell deliveries --status failed --since 1d\n  hookwell deliveries --status failed --json | jq -r '.items[].id' | xargs hookwell retry",
    ],
  }),
  async run(args, terminal) {
    const { values: flags, positionals } = readArguments(args, options);
    const id = listOrOne(positionals, flags, "a delivery", []);
    readListFlags(flags);
    return withHooks(terminal, flags, async (hooks) => {
      if (id === undefined) {
        const filter = readDeliveryFilter(flags, hooks.clock());
        await printList(terminal, flags, {
          fetch: (page) => hooks.deliveries.list(filter, page),
          toJson: deliveryToJson,
          columns: deliveryColumns,
          none: "No delivery matches.",
        });
        return exitCode.ok;
      }
      const delivery = await hooks.deliveries.get(id);
      if (flags.json) printJson(terminal, deliveryDetailToJson(delivery));
      else printDelivery(terminal, delivery);
      return exitCode.ok;
    });
  },
};

function printDelivery(terminal: Terminal, delivery: DeliveryDetail): void {
  const json = deliveryDetailToJson(delivery);
  printRecord(terminal, [
    ["delivery", delivery.id],
    ["status", deliveryState(delivery)],
    ["event", delivery.eventId],
    ["type", delivery.type],
    ["subject", delivery.subject],
    ["project", delivery.projectId],
    ["tenant", delivery.tenantId],
    ["subscription", delivery.subscriptionId],
    ["url", delivery.url],
    ["attempts", `${delivery.attempts}${delivery.round > 1 ? ` (round ${delivery.round})` : ""}`],
    ["error", delivery.errorCode],
    ["", delivery.lastError],
    ["next attempt", shortTime(delivery.nextAttemptAt)],
    ["created", shortTime(delivery.createdAt)],
    ["updated", shortTime(delivery.updatedAt)],
    ["delivered", shortTime(delivery.deliveredAt)],
    ["body", json.body],
  ]);
  if (json.attempt_log.length === 0) return;
  terminal.print("");
  new Table<(typeof json.attempt_log)[number]>(terminal, [
    { name: "ROUND", value: ({ round }) => round },
    { name: "TRY", value: ({ number }) => number },
    { name: "STARTED", value: ({ started_at }) => started_at },
    { name: "MS", value: ({ duration_ms }) => Math.round(duration_ms) },
    { name: "ANSWER", value: ({ status_code, error_code }) => status_code ?? error_code },
    { name: "WHAT", value: ({ error, response_excerpt }) => response_excerpt || error },
  ]).print(json.attempt_log);
}
