import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, describe } from "vitest";

const path = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
const found = existsSync(path);
if (!found && process.env.CI) throw new Error(`No browser at ${path}: CI must have one (CHROMIUM_PATH).`);
if (!found)
  console.warn(`SKIPPED: the customers' pages were not tried in a browser, there is none at ${path}.`);

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Tests that need a browser: skipped, and loudly, where there is none. */
export const describeInBrowser: (name: string, tests: () => void) => void = describe.skipIf(!found);

/** A page on which nothing may go wrong unnoticed. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts and of the content policy, dialogs, and requests to anybody else. */
  readonly faults: string[];
  close(): Promise<void>;
}

export const phone = { viewport: { width: 375, height: 740 } };
export const desktop = { viewport: { width: 1100, height: 800 } };

let browser: Promise<Browser> | undefined;
afterAll(async () => {
  await (await browser)?.close();
  browser = undefined;
});

/** A page of its own, with no memory of others. `origin` is the only place that it may ask. */
export async function watchedPage(origin: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  browser ??= chromium.launch({ executablePath: path, args: flags });
  const context = await (await browser).newContext({
    ...desktop,
    timezoneId: "Europe/Vienna",
    locale: "en-GB",
    ...options,
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    // A refusal that the page explains is an error to the browser too.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      faults.push(message.text());
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`request to ${request.url()}`);
  });
  page.on("requestfinished", async (request) => {
    // What was really sent: of what a page asks for, the address of a customer must not be told to anybody.
    const sent = await request.allHeaders().catch(() => ({ referer: undefined }));
    if (sent.referer) faults.push(`referrer ${sent.referer} sent to ${request.url()}`);
  });
  return { page, faults, close: () => context.close() };
}
