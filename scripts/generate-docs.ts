// Writes the reference pages that are made from the code; with --check it fails when one of them is stale.
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exitCodeMeanings, exitCodesHelp } from "../packages/hookwell/src/cli/command.ts";
import { commandGroups } from "../packages/hookwell/src/cli/commands.ts";
import { settings } from "../packages/hookwell/src/model/settings.ts";
import { levels, sentences } from "../packages/hookwell/src/publish/log-observed.ts";
import {
  attemptBuckets,
  type MetricDefinition,
  metricTable,
} from "../packages/hookwell/src/publish/metric-table.ts";
import { deliveryCodes, httpCodes, otherCodes } from "../packages/hookwell/src/send/delivery-codes.ts";
import { libraryCodes, problemCodes } from "../packages/server/src/http/problem-codes.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const note = "<!-- Made by `npm run docs` from the code. Change the code, not this page. -->";

/** A Markdown table, padded as the formatter wants it; cells are one line each. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((cells) =>
    cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")),
  );
  const widths = head.map((_, column) => Math.max(3, ...lines.map((cells) => cells[column]!.length)));
  const write = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  const rule = write(widths.map((width) => "-".repeat(width)));
  return [write(lines[0]!), rule, ...lines.slice(1).map(write)].join("\n");
}

function configurationPage(): string {
  const rows = settings.map((setting) => [
    `\`${setting.name}\``,
    `${setting.meaning}${setting.secret ? " Never printed." : ""}`,
    setting.default,
    setting.unit,
    setting.readBy.map((reader) => (reader === "others" ? reader : `\`${reader}\``)).join(", "),
  ]);
  return `${note}

# Configuration

Every environment variable that \`npx hookwell serve\`, \`worker\`, \`migrate\`, the reference application (\`npm start\`) and
the other [commands](cli.md) that work on the database ("others" below) read. An empty variable counts as absent. A
value that cannot be used ends the program with exit code 2 and a message that names the variable. The library itself
reads none of these but \`HOOKWELL_ENCRYPTION_KEYS\`, and that only when a store is made without keys.

${table(["Variable", "Meaning", "Default", "Form", "Read by"], rows)}

With \`--config hookwell.config.ts\` the instance that this module exports as \`hooks\` has its own store, networks and
retry policy; the variables for those are then not read.
`;
}

interface ErrorClass {
  readonly name: string;
  readonly parent: string;
  readonly meaning: string;
  readonly codes: readonly string[];
}

/** The error classes of a source file: doc comment, name, and the code literals given to \`super\`. */
function errorClasses(file: string): ErrorClass[] {
  const source = readFileSync(join(root, file), "utf8");
  const pattern = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export class (\w+) extends (\w+) \{([\s\S]*?)\n\}/g;
  return [...source.matchAll(pattern)].map(([, comment, name, parent, body]) => ({
    name: name!,
    parent: parent!,
    meaning: plain(comment!),
    codes: codesOf(name!, body!, source),
  }));
}

function codesOf(name: string, body: string, source: string): string[] {
  if (name === "VerificationError") {
    const union = /export type VerificationCode =([^;]*);/.exec(source)?.[1] ?? "";
    return [...union.matchAll(/"(\w+)"/g)].map(([, code]) => code!);
  }
  if (name === "ConfigurationError") return ["configuration", ...configurationCodes()];
  const literal = (/super\(\s*"([a-z_]+)"/.exec(body) ??
    /code = "([a-z_]+)"/.exec(body) ??
    /,\s*"([a-z_]+)",?\s*\);/.exec(body))?.[1];
  return literal === undefined ? [] : [literal];
}

/** The codes that are given to ConfigurationError anywhere, as its last argument. */
function configurationCodes(): string[] {
  const codes = new Set<string>();
  for (const file of globSync("packages/*/src/**/*.ts", { cwd: root })) {
    const source = readFileSync(join(root, file), "utf8");
    for (const { index } of source.matchAll(/new ConfigurationError\(/g)) {
      const call = callAt(source, index);
      const code = /,\s*"([a-z_]+)",?\s*\)$/.exec(call)?.[1];
      if (code !== undefined) codes.add(code);
    }
  }
  return [...codes].sort();
}

/** The text of a call from its first letter to the parenthesis that ends it; strings are skipped. */
function callAt(source: string, start: number): string {
  let depth = 0;
  for (let index = source.indexOf("(", start); index < source.length; index++) {
    const letter = source[index]!;
    if (letter === "(") depth++;
    else if (letter === ")" && --depth === 0) return source.slice(start, index + 1);
    else if (letter === '"' || letter === "`" || letter === "'") {
      while (source[++index] !== letter) if (source[index] === "\\") index++;
    }
  }
  throw new Error("A call of ConfigurationError does not end.");
}

/** A doc comment as one paragraph. */
function plain(comment: string): string {
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trim())
    .join(" ")
    .replaceAll(/\{@link (?:\w+\.)?(\w+)\}/g, "`$1`")
    .trim();
}

function errorsPage(): string {
  const classes = [
    ...errorClasses("packages/hookwell/src/model/errors.ts"),
    ...errorClasses("packages/hookwell/src/send/sender.ts"),
  ];
  const withCodes = classes.filter(({ codes }) => codes.length > 0);
  const libraryRows = withCodes.map(({ name, codes, meaning }) => [
    codes.map((code) => `\`${code}\``).join(" "),
    `\`${name}\``,
    meaning,
  ]);
  const attemptRows = [...deliveryCodes, ...httpCodes, ...otherCodes].map(({ code, meaning, advice }) => [
    `\`${code}\``,
    meaning,
    advice,
  ]);
  const apiRows = Object.entries(problemCodes).map(([code, { status, meaning }]) => [
    `\`${code}\``,
    String(status),
    meaning,
  ]);
  const statuses = [...new Set(Object.values(libraryCodes))];
  const libraryStatusRows = statuses.map((status) => [
    String(status),
    Object.entries(libraryCodes)
      .filter(([, its]) => its === status)
      .map(([code]) => `\`${code}\``)
      .join(" "),
  ]);
  return `${note}

# Errors

## Of the library

Every error that Hookwell throws on purpose is a \`HookwellError\` with a stable \`code\`. \`isHookwellError(error)\` knows
one, whichever copy of the package made it. The message says what happened, to which id, and what to do; it never has a
secret. \`ValidationError\` and its kinds have \`problems\`: \`{ pointer, message }\` for each field.

${table(["Code", "Class", "Meaning"], libraryRows)}

## Of the REST API

Answers of status 400 and above are \`application/problem+json\` (RFC 9457): \`type\` (\`urn:hookwell:error:<code>\`),
\`title\`, \`status\`, \`detail\`, \`code\`, \`request_id\` (also in the header \`x-request-id\`), and \`errors\` with a JSON
pointer and a message for each field. Errors of the library keep their code:

${table(["Status", "Codes of the library"], libraryStatusRows)}

The API adds:

${table(["Code", "Status", "Meaning"], apiRows)}

## Of delivery attempts

\`error_code\` of a delivery and of each attempt. All of them are retried on the schedule, but for 410, and for
\`worker_lost\` and \`unreadable\`, which end a delivery.

${table(["Code", "Meaning", "What to do"], attemptRows)}
`;
}

interface ObservedEntry {
  readonly name: string;
  readonly meaning: string;
  readonly fields: readonly string[];
}

/** The members of an interface of the observable events: doc comment, name, and the fields of each. */
function observedEntries(): ObservedEntry[] {
  const source = readFileSync(join(root, "packages/hookwell/src/model/observe.ts"), "utf8");
  const body = (name: string): string =>
    new RegExp(`export interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(source)?.[1] ?? "";
  const fieldsOf = (text: string): string[] =>
    [...text.matchAll(/readonly (\w+\??):/g)].map(([, name]) => name!);
  const moment = fieldsOf(body("DeliveryMoment"));
  // One member ends where a line ends with a semicolon at the depth of the interface.
  const member =
    /^(?: {2}\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)? {2}readonly (\w+): ((?:.*\n {4})*.*(?:\n {2}\})?.*);$/gm;
  return [...body("ObservedEvents").matchAll(member)].map(([, comment, name, type]) => {
    if (comment === undefined)
      throw new Error(
        `ObservedEvents.${name} has no doc comment: say when it is fired and what its fields are.`,
      );
    const own = fieldsOf(type!);
    const fields = type!.includes("DeliveryMoment") ? [...moment, ...own] : own;
    if (fields.length === 0) throw new Error(`The fields of ObservedEvents.${name} cannot be read.`);
    return { name: name!, meaning: plain(comment), fields };
  });
}

function observabilityPage(): string {
  const rows = observedEntries().map(({ name, meaning, fields }) => [
    `\`${name}\``,
    meaning,
    fields.map((field) => `\`${field}\``).join(" "),
    levels[name as keyof typeof levels],
  ]);
  return `${note}

# Observable events

\`createHookwell({ observe })\` is told of everything that Hookwell does in this process, as \`observe(name, event)\`:
build metrics and traces on it. It is called in the middle of the work, so it must return at once; one that throws
is logged and stops nothing. The names and fields are a contract: they are added to, and not changed.

\`\`\`ts
const hooks = createHookwell({
  // …
  observe(name, event) {
    counter.add(1, { name });
  },
});
\`\`\`

No field has a signing secret, a header value or a webhook's body. \`error\` is text for people; \`errorCode\` is stable
([errors](errors.md)). Times are \`Date\`, durations whole milliseconds (\`durationMs\`, \`delayMs\`). \`attempt\` counts the
sends of a delivery's round, from 1.

${table(["Event", "When", "Fields", "Log level"], rows)}

## In the log

A logger with \`info\`, \`warn\` and \`error\` (the console, unless another is given) gets a sentence for those that an
operator should know of: ${Object.keys(sentences)
    .map((name) => `\`${name}\``)
    .join(", ")}.

With \`HOOKWELL_LOG=json\` the programs (\`serve\`, \`worker\`, \`npm start\`) write a line of JSON for each event and each API
request instead: \`time\`, \`level\`, \`event\`, \`message\` (the sentence, where there is one), and the fields above by the
names of the API (\`event_id\`, \`delivery_id\`, \`subscription_id\`, \`error_code\` …). What is written while a request is
answered has its \`request_id\`. \`HOOKWELL_LOG_LEVEL\` says from which level on; warnings and errors go to standard error.
What a receiver answered is never logged, since it may repeat a header; keys, signing secrets and passwords in addresses
are cut from every line. The module of \`--config\` says itself where its instance logs:

\`\`\`ts
import { loggerFromSettings, readSettings } from "hookwell/environment";

export const hooks = createHookwell({ logger: loggerFromSettings(readSettings(process.env)) /* … */ });
\`\`\`

A logger of your own gets whole records, too, when it has \`structured: { entry(entry), within(fields, work) }\`
(\`StructuredLog\`).
`;
}

/** What every command prints for `--help`; the exit codes, the same for all, are said once. */
function commandLinePage(): string {
  const common = exitCodesHelp.trimEnd();
  const sections = commandGroups.map(({ title, commands }) => {
    const texts = commands.map(({ name, help }) => {
      const own = help.trimEnd().replace(`\n\n${common}\n`, "\n\nExit codes\n").replace(`\n\n${common}`, "");
      return `### hookwell ${name}\n\n\`\`\`text\n${own}\n\`\`\``;
    });
    return `## ${title}\n\n${texts.join("\n\n")}`;
  });
  const codes = exitCodeMeanings.map(({ code, meaning }) => [String(code), meaning]);
  return `${note}

# Command line

\`npx hookwell <command>\`. Commands that read or change something work on the database itself, so no server needs to
run: \`HOOKWELL_DATABASE_URL\` or \`DATABASE_URL\` (PostgreSQL), else SQLite in \`HOOKWELL_DATA_DIR\` (./data), or that of
\`--config hookwell.config.ts\` ([configuration](configuration.md)). They make and migrate nothing,
unless the store of that module does: \`hookwell migrate\` is for that.

Standard output has data and nothing else. Notes, questions and progress go to standard error; a progress bar is drawn
only in a terminal, elsewhere a line comes now and then. Tables are cut to the width of the terminal and have colours
only there, and not with \`NO_COLOR\`. \`--json\` prints one JSON document in the shapes of the REST API: a list is
\`{"items": […], "next_cursor": …}\` with one item a line, and commands that take several ids print
\`{"items": […], "errors": [{id, code, message}]}\`. Times are UTC.

## Exit codes

${table(["Code", "Meaning"], codes)}

${sections.join("\n\n")}
`;
}

function metricsPage(): string {
  const rows = (Object.values(metricTable) as MetricDefinition[]).map(
    ({ name, type, help, labels, from }) => [
      `\`${name}\``,
      type,
      labels?.map((label) => `\`${label}\``).join(" ") ?? "",
      help,
      from,
    ],
  );
  return `${note}

# Metrics

\`GET /metrics\` of the server, and of \`hookwell worker\` on its health port, is a page in the Prometheus text format;
\`hooks.metrics()\` gives the same text to an application with routes of its own. It needs a key of all projects with the
scope \`read\` (\`authorization: { credentials: hwk_… }\` in a scrape configuration); \`HOOKWELL_METRICS=open\` lets everybody
in who reaches the port, \`off\` nobody.

Counters are of the process that answers, from its start: scrape every replica, and add them up. Gauges are of the
database and the same from every replica: take \`max\` of them, not the sum. Names and labels are a contract: they are
added to, and not changed. No label has an id or a name in it that others choose; labels by subscription are there only
with \`HOOKWELL_METRICS_SUBSCRIPTIONS\` (\`metrics: { subscriptions }\` of \`createHookwell\`), for as many as it says.

${table(["Metric", "Type", "Labels", "Meaning", "From"], rows)}

The buckets of \`hookwell_attempt_duration_seconds\` end at ${attemptBuckets.join(", ")} seconds. Series with a label appear
when they are first counted.
`;
}

const pages = {
  "docs/reference/metrics.md": metricsPage(),
  "docs/reference/cli.md": commandLinePage(),
  "docs/reference/observability.md": observabilityPage(),
  "docs/reference/configuration.md": configurationPage(),
  "docs/reference/errors.md": errorsPage(),
};

const check = process.argv.includes("--check");
const stale: string[] = [];
for (const [file, text] of Object.entries(pages)) {
  const path = join(root, file);
  if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
  stale.push(file);
  if (!check) writeFileSync(path, text);
}
if (check && stale.length > 0) {
  console.error(`${stale.join(", ")}: older than the code. Run \`npm run docs\` and commit the result.`);
  process.exit(1);
}
