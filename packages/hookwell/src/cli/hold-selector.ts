import type { HoldSelector } from "../model/hold.ts";
import { UsageError } from "./command.ts";
import type { Options } from "./options.ts";

/** What is meant: exactly one of them. */
export const selectorOptions = {
  all: { type: "boolean", help: "everything" },
  project: { type: "string", value: "<id>", help: "the deliveries of one project" },
  type: {
    type: "string",
    value: "<type>",
    help: "the deliveries of an event type, or of a family: booking.created, 'booking.*'",
  },
} as const satisfies Options;

interface SelectorFlags {
  readonly all?: boolean | undefined;
  readonly project?: string | undefined;
  readonly type?: string | undefined;
}

/** @throws UsageError */
export function readSelector(
  flags: SelectorFlags,
  positionals: readonly string[],
  verb: string,
): HoldSelector {
  const { all, project, type } = flags;
  const given = [all, project, type].filter((flag) => flag !== undefined);
  if (given.length !== 1 || positionals.length > 0)
    throw new UsageError(
      `Say what to ${verb}, with one of --all (everything), --project <id> and --type <type> (booking.created, 'booking.*').`,
    );
  if (project !== undefined) return { projectId: project };
  return type === undefined ? { all: true } : { type };
}

/** A selector as it is typed. */
export function typedSelector(selector: HoldSelector): string {
  if ("all" in selector) return "--all";
  return "projectId" in selector
    ? `--project ${quoted(selector.projectId)}`
    : `--type ${quoted(selector.type)}`;
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_.-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
