/** One option of a command: how it is read, and its line in `--help`. */
export interface Option {
  readonly type: "string" | "boolean";
  /** It may be given more than once. */
  readonly multiple?: true;
  /** What stands for the value: `<id>`. */
  readonly value?: string;
  readonly help: string;
  /** "" is a value (it removes something), not a shell variable that was not set. */
  readonly mayBeEmpty?: true;
}

export type Options = Readonly<Record<string, Option>>;

export const databaseOptions = {
  config: {
    type: "string",
    value: "<file>",
    help: "use the database, event types and settings of the instance that this module exports as `hooks`",
  },
} as const satisfies Options;

export const devOption = {
  dev: {
    type: "boolean",
    help: "development: urls may be on loopback addresses and plain http (without --config)",
  },
} as const satisfies Options;

export const jsonOption = {
  json: { type: "boolean", help: "print one JSON document, in the shapes of the REST API" },
} as const satisfies Options;

export const pageOptions = {
  limit: { type: "string", value: "<n>", help: "at most so many; default 50" },
  all: { type: "boolean", help: "every one, page after page" },
  cursor: { type: "string", value: "<cursor>", help: "go on after a page: its `next_cursor`" },
} as const satisfies Options;

export const timeOptions = {
  since: {
    type: "string",
    value: "<time>",
    help: "from then on: 90s, 2h or 7d ago, or a time such as 2026-01-31T12:00:00Z",
  },
  until: { type: "string", value: "<time>", help: "before then, in the same forms" },
} as const satisfies Options;

export const placeOptions = {
  project: { type: "string", value: "<id>", help: "of this project" },
  tenant: { type: "string", value: "<id>", help: "of this tenant" },
} as const satisfies Options;

export const yesOption = {
  yes: { type: "boolean", help: "do not ask whether it is meant" },
} as const satisfies Options;
