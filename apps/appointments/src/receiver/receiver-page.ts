import { html, raw } from "hono/html";
import type { ReceivedWebhooksTable } from "../database/schema.ts";

type Html = ReturnType<typeof html>;

/** The whole page: no file, font or script from anywhere else. Every received text is escaped by `html`. */
export function receiverPage(rows: readonly ReceivedWebhooksTable[], nonce: string): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Received webhooks</title>
<style nonce="${nonce}">${raw(style)}</style>
</head>
<body>
<header>
<h1>Received webhooks</h1>
<p id="state" role="status">Looks for new ones every second.</p>
</header>
<main id="list">${receiverList(rows)}</main>
<noscript><p>Without scripts this page does not refresh itself: reload it.</p></noscript>
<script nonce="${nonce}">${raw(script)}</script>
</body>
</html>`;
}

/** The list alone, newest first. */
export function receiverList(rows: readonly ReceivedWebhooksTable[]): Html {
  if (rows.length === 0)
    return html`<p class="empty">Nothing yet. Create a user, and its webhook appears here.</p>`;
  return html`${rows.map(webhook)}`;
}

function webhook(row: ReceivedWebhooksTable): Html {
  return html`<article id="w-${row.id}" data-webhook-id="${row.webhook_id}" data-repeat="${row.is_repeat}">
<h2>${row.event_type || "(no type)"}</h2>
<p class="marks">${mark("Standard Webhooks signature", row.signature_fault)}
${mark("Body signature", row.body_signature_fault)}
<span class="mark ${row.is_repeat ? "repeat" : "first"}">${row.is_repeat ? "Repeat" : "First time"}</span></p>
${[row.signature_fault, row.body_signature_fault].filter((fault) => fault !== "").map((fault) => html`<p class="why">${fault}</p>`)}
<dl>
<dt>Received</dt><dd><time datetime="${row.received_at}">${row.received_at}</time> by ${row.receiver}</dd>
<dt>Event</dt><dd><code>${row.webhook_id || "(no webhook-id)"}</code></dd>
<dt>Delivery</dt><dd><code>${row.delivery_id || "(none)"}</code>, attempt ${row.attempt || "?"}</dd>
${revision(row.body)}
</dl>
<details><summary>Body</summary><pre>${pretty(row.body)}</pre></details>
</article>
`;
}

function mark(what: string, fault: string): Html {
  if (fault === "") return html`<span class="mark good">${what} verified</span>`;
  return html`<span class="mark bad">${what} NOT verified</span>`;
}

/** Which change of its subject the event tells of: what a receiver orders by. */
function revision(body: string): Html | string {
  const found = /"revision":(\d{1,15})[,}]/.exec(body)?.[1];
  return found === undefined ? "" : html`<dt>Revision</dt><dd>${found}</dd>`;
}

/** Indented when it is JSON; numbers beyond 2^53 would lose digits by that, so such a body stays as it is. */
function pretty(body: string): string {
  if (/\d{16}/.test(body)) return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

const style = `
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #c62828; --quiet: #666; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #ff7b72; --quiet: #aaa; } }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 48rem; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
header p, .empty { color: var(--quiet); margin: .25rem 0 1rem; }
article { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; margin-bottom: .75rem; }
.marks { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0 0 .5rem; }
.mark { border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem; font-size: .85rem; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: bold; }
.why { margin: 0 0 .5rem; font-size: .9rem; overflow-wrap: anywhere; }
.first { color: var(--quiet); } .repeat { font-weight: bold; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0 .75rem; margin: 0 0 .5rem; font-size: .9rem; }
dt { color: var(--quiet); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
summary { cursor: pointer; padding: .25rem 0; }
pre { overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0 0; font-size: .85rem; }
`;

// Keeps opened bodies open, and says so when the server is away instead of looking alive.
const script = `
const list = document.getElementById("list");
const state = document.getElementById("state");
let last = list.innerHTML;
async function refresh() {
  try {
    const response = await fetch("/receiver/list");
    if (!response.ok) throw new Error(response.status);
    const text = await response.text();
    if (text !== last) {
      const open = new Set([...list.querySelectorAll("details[open]")].map((part) => part.closest("article").id));
      list.innerHTML = last = text;
      for (const id of open) document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
    }
    state.textContent = "Looks for new ones every second.";
  } catch {
    state.textContent = "The application does not answer; what is below may be old.";
  }
  setTimeout(refresh, 1000);
}
setTimeout(refresh, 1000);
`;
