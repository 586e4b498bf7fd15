import { describeHold } from "../../model/hold.ts";
import type { HookwellCore } from "../../publish/surface.ts";
import type { StoreInspection } from "../../store/inspection-contract.ts";
import type { LaneTrouble, Trouble } from "../../store/stats-contract.ts";
import { deliveryHealth } from "../delivery-health.ts";
import { typedSelector } from "../hold-selector.ts";
import { shortDuration, shortTime } from "../times.ts";
import { type Found, note, problem, well } from "./report.ts";

/** Whether webhooks leave, and what keeps some of them back. */
export async function checkDelivery(
  hooks: HookwellCore,
  inspection: StoreInspection,
  maxLagMs: number,
  say: (found: Found) => void,
): Promise<void> {
  const now = inspection.clock.getTime();
  say(await due(hooks, now, maxLagMs));
  for (const found of undispatched(hooks, inspection, maxLagMs)) say(found);
  say(await parked(hooks));
  for (const found of await lanes(hooks)) say(found);
  for (const held of await hooks.holds.list())
    say(
      note(
        "hold",
        `Held on purpose, and not sent: ${describeHold(held)}.`,
        `hookwell release ${typedSelector(held.selector)}`,
      ),
    );
}

async function due(hooks: HookwellCore, now: number, maxLagMs: number): Promise<Found> {
  const { oldestDueAt } = await deliveryHealth(hooks, maxLagMs);
  if (!oldestDueAt) return well("due", "No delivery waits that could be sent.");
  const age = now - oldestDueAt.getTime();
  const message = `The oldest delivery that could be sent has been due for ${shortDuration(Math.max(0, age))}.`;
  return age <= maxLagMs
    ? well("due", message)
    : problem(
        "due",
        message,
        "Does a worker run (`hookwell worker`, `hookwell serve` without HOOKWELL_WORKER=off, hooks.start()), with this database? If one does, it has more to do than it can: run another (PostgreSQL).",
      );
}

function undispatched(
  hooks: HookwellCore,
  { clock, undispatched }: StoreInspection,
  maxLagMs: number,
): Found[] {
  const known = new Set(["*", ...hooks.catalogue.map(({ type }) => type)]);
  const late = undispatched.filter(({ oldestAt }) => clock.getTime() - oldestAt.getTime() > maxLagMs);
  if (late.length === 0)
    return [
      well(
        "dispatch",
        undispatched.length === 0
          ? "Every event is dispatched."
          : "No event has waited long to be dispatched.",
      ),
    ];
  return late.map(({ route, oldestAt }) =>
    problem(
      "dispatch",
      `${route === "*" ? "Events" : `Events of the type ${route}`} wait to be dispatched, the oldest since ${shortTime(oldestAt)}.`,
      known.has(route)
        ? "Does a process with a dispatcher run: `hookwell worker`, or hooks.start()?"
        : "Only a process that has this type in its catalogue takes them: run `hookwell worker --config hookwell.config.ts`, or emit the type no more.",
    ),
  );
}

async function parked(hooks: HookwellCore): Promise<Found> {
  const { items, next } = await hooks.events.list({ outcome: "parked" }, { limit: 100 });
  const [newest] = items;
  if (!newest) return well("parked", "No event is parked.");
  return problem(
    "parked",
    `${next ? "More than 100 events are" : items.length === 1 ? "One event is" : `${items.length} events are`} parked: they could not be dispatched. The newest, ${newest.id} (${newest.type}): ${newest.error ?? newest.damage ?? "no error is known"}`,
    "Mend what the error says, then `hookwell events --outcome parked` and `hookwell events release <id>…`.",
  );
}

const troubleTexts: Readonly<Record<Trouble, { readonly what: string; readonly advice: string }>> = {
  circuit_open: {
    what: "with an open circuit, to which only single probes go",
    advice:
      "Deliveries wait and lose no attempt. `hookwell subscriptions test <id>` says what it answers; its owner must mend it.",
  },
  failing: {
    what: "whose last attempts have all failed",
    advice: "`hookwell deliveries --subscription <id> --since 1h` has the errors.",
  },
  rate_limited: {
    what: "that get more than their rate limit lets through, so deliveries wait",
    advice: "Raise it with `hookwell subscriptions update <id> --rate-limit`, or let it drain.",
  },
  disabled: {
    what: "that are disabled, for which nothing new is queued",
    advice:
      "`hookwell subscriptions --status disabled` says why. Those that failed or answered 410 can be mended, then `hookwell subscriptions enable <id>`, then `hookwell replay --status missing`.",
  },
};

/** Endpoints that need somebody. A disabled one may stay so for good. */
async function lanes(hooks: HookwellCore): Promise<Found[]> {
  const { items, counts, more } = (await hooks.stats()).lanes;
  const found = (Object.keys(troubleTexts) as Trouble[])
    .filter((reason) => counts[reason] > 0)
    .map((reason) => {
      const { what, advice } = troubleTexts[reason];
      const some = items.filter((item) => item.reason === reason);
      const count = `${counts[reason]}${more ? " or more" : ""}`;
      const message = `Endpoints ${what}: ${count} (${names(some)}).`;
      return reason === "circuit_open" || reason === "failing"
        ? problem("endpoints", message, advice)
        : note("endpoints", message, advice);
    });
  return found.length > 0 ? found : [well("endpoints", "No subscription needs anybody.")];
}

const mostNamed = 3;

function names(lanes: readonly LaneTrouble[]): string {
  const named = lanes
    .slice(0, mostNamed)
    .map(({ subscriptionId, since }) => `${subscriptionId} since ${shortTime(since)}`);
  return named.join(", ") + (lanes.length > mostNamed ? ", …" : "");
}
