import { html } from "hono/html";
import type { LocationType } from "../database/scheduling-tables.ts";
import type { Html } from "./page-layout.ts";

interface Place {
  readonly type: LocationType;
  /** "" while unknown. */
  readonly value: string;
}

/** Where an appointment will be, for somebody who has not booked: what lets one in is not shown yet. */
export function placeOffered({ type, value }: Place): string {
  if (type === "in_person") return value === "" ? "In person" : `In person: ${value}`;
  return type === "phone" ? "By phone" : "Online";
}

/** Where an appointment is, for the one who booked it. */
export function placeBooked({ type, value }: Place): Html | string {
  if (type === "in_person" || type === "phone") {
    const how = type === "phone" ? "By phone" : "In person";
    return value === "" ? how : `${how}: ${value}`;
  }
  if (value === "") return "Online; the link is not known yet. It is shown here when it is.";
  if (!isWebAddress(value)) return `Online: ${value}`;
  return html`Online: <a href="${value}" rel="noopener noreferrer">${value}</a>`;
}

/** Nothing else becomes a link: `javascript:` and its kind are text. */
function isWebAddress(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}
