import { html } from "hono/html";
import { type Html, pageLayout } from "./page-layout.ts";

export interface Message {
  readonly status: 404 | 410 | 429 | 500 | 503;
  readonly title: string;
  readonly text: string;
}

const askAgain = "Ask whoever invited you for a new link.";

/** What a customer is told instead of a page that cannot be had. */
export const messages = {
  unknownInvitation: {
    status: 404,
    title: "There is no such invitation",
    text: `The link may have been cut off: open it again from the message you got it with. ${askAgain}`,
  },
  booked: {
    status: 410,
    title: "This invitation was used",
    text: "A time is booked already. To move or cancel the appointment, open the link that you got when it was booked.",
  },
  cancelled: {
    status: 410,
    title: "This invitation was cancelled",
    text: `Whoever invited you took it back, so nothing can be booked with it. ${askAgain}`,
  },
  expired: {
    status: 410,
    title: "This invitation has expired",
    text: `It was not used in time, so nothing can be booked with it. ${askAgain}`,
  },
  unavailable: {
    status: 410,
    title: "This appointment is not offered at present",
    text: "Nothing can be booked with this invitation just now. Ask whoever invited you.",
  },
  unknownBooking: {
    status: 404,
    title: "There is no such appointment",
    text: "The link may have been cut off, or it is too old: a link works for 60 days. To change the appointment, ask whom you are to meet.",
  },
  tooMany: {
    status: 429,
    title: "Too many requests",
    text: "This page was opened too often from your network. Wait a minute, then reload it.",
  },
  broken: {
    status: 500,
    title: "Something went wrong",
    text: "The page cannot be shown at present. Nothing was changed. Reload it in a few minutes.",
  },
  busy: {
    status: 503,
    title: "Not available for a moment",
    text: "The page cannot be shown at present. Nothing was changed. Reload it in a few minutes.",
  },
} as const satisfies Record<string, Message>;

export function messagePage({ title, text }: Message): Html {
  return pageLayout({
    title,
    main: html`<section class="card message">
<h1>${title}</h1>
<p>${text}</p>
</section>`,
  });
}
