// @ts-check
import { make } from "./elements.js";
import { isZone } from "./times.js";

/** The zone of this device. */
export const deviceZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/**
 * Fills a list with every zone that this browser knows, by region, and chooses one.
 * @param {HTMLSelectElement} select
 * @param {string} chosen
 */
export function fillZones(select, chosen) {
  const zones = new Set([...Intl.supportedValuesOf("timeZone"), "UTC"]);
  if (isZone(chosen)) zones.add(chosen);
  /** @type {Map<string, string[]>} */
  const regions = new Map();
  for (const zone of [...zones].sort()) {
    const region = zone.includes("/") ? zone.slice(0, zone.indexOf("/")) : "Other";
    regions.set(region, [...(regions.get(region) ?? []), zone]);
  }
  select.replaceChildren(
    ...[...regions].map(([region, members]) =>
      make(
        "optgroup",
        { label: region },
        ...members.map((zone) => make("option", { value: zone }, cityOf(zone))),
      ),
    ),
  );
  select.value = isZone(chosen) ? chosen : "UTC";
}

/** @param {string} zone */
function cityOf(zone) {
  return zone.slice(zone.indexOf("/") + 1).replaceAll("_", " ");
}
