import type { HookwellCore } from "../../publish/surface.ts";
import type { StoreInspection } from "../../store/inspection-contract.ts";
import { deliveryHealth } from "../delivery-health.ts";
import { shortDuration, shortTime } from "../times.ts";
import { type Found, problem, well } from "./report.ts";

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
