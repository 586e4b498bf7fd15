import { isHookwellError } from "../model/errors.ts";
import { exitCode, type Terminal } from "./command.ts";
import { printJson } from "./lists.ts";
import { Progress } from "./terminal/progress.ts";
import { throwIfStopped } from "./terminal/stopped.ts";

/**
 * Does one thing to each of several ids. One that is refused is told of and the rest go on; the exit code is then 1.
 * With --json: `{"items": […], "errors": [{id, code, message}]}`.
 */
export async function forEachId<T>(
  terminal: Terminal,
  ids: readonly string[],
  work: {
    readonly act: (id: string) => Promise<T>;
    readonly toJson: (result: T) => unknown;
    /** The line for a person. */
    readonly toText: (result: T) => string;
    readonly json: boolean | undefined;
    /** What is counted while it lasts: "deliveries". */
    readonly what: string;
  },
): Promise<number> {
  const items: unknown[] = [];
  const errors: { readonly id: string; readonly code: string; readonly message: string }[] = [];
  const progress = new Progress(terminal, work.what);
  let done = 0;
  for (const id of ids) {
    throwIfStopped(terminal);
    try {
      const result = await work.act(id);
      if (work.json) items.push(work.toJson(result));
      else {
        progress.end();
        terminal.print(work.toText(result));
      }
    } catch (error) {
      // What concerns the database concerns the other ids as well.
      if (!isHookwellError(error) || !["not_found", "invalid_state"].includes(error.code)) throw error;
      errors.push({ id, code: error.code, message: error.message });
      progress.end();
      terminal.note(error.message);
    }
    if (ids.length > 1) progress.update(++done, ids.length);
  }
  progress.end();
  if (work.json) printJson(terminal, { items, errors });
  return errors.length > 0 ? exitCode.failed : exitCode.ok;
}
