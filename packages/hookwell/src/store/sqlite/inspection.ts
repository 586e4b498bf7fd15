import { accessSync, constants, type Stats, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Finding, mostRoutes, type Undispatched } from "../inspection-contract.ts";
import type { Connection } from "./connection.ts";
import { integer, text } from "./rows.ts";

const leastFreeBytes = 256 * 1_048_576;
const leastFreePart = 0.02;
const mostWalBytes = 256 * 1_048_576;

// Routes one after the other by the index; in each the oldest of those never tried and of the first that wait for
// another try.
const undispatchedText = `
WITH RECURSIVE routes (route, number) AS (
  SELECT min(route), 1 FROM hookwell_event INDEXED BY hookwell_event_new WHERE state = 'new'
  UNION ALL
  SELECT (SELECT min(e.route) FROM hookwell_event e INDEXED BY hookwell_event_new
    WHERE e.state = 'new' AND e.route > routes.route), number + 1
  FROM routes WHERE routes.route IS NOT NULL AND number < ${mostRoutes})
SELECT route, min(
  coalesce((SELECT e.captured_at FROM hookwell_event e INDEXED BY hookwell_event_new
    WHERE e.state = 'new' AND e.route = routes.route AND e.due_at = 0 ORDER BY e.seq LIMIT 1), 9e15),
  coalesce((SELECT min(captured_at) FROM (
    SELECT e.captured_at FROM hookwell_event e INDEXED BY hookwell_event_new
    WHERE e.state = 'new' AND e.route = routes.route AND e.due_at > 0 LIMIT 1000)), 9e15)) AS oldest
FROM routes WHERE route IS NOT NULL`;

export function undispatched(connection: Connection): Undispatched[] {
  return connection.all(undispatchedText).map((row) => ({
    route: text(row.route),
    oldestAt: new Date(integer(row.oldest)),
  }));
}

/** What can be said of the file, the files beside it, and their place. */
export function fileFindings(connection: Connection): Finding[] {
  const { path } = connection;
  if (path === ":memory:")
    return [
      { level: "note", check: "file", message: "The database is in memory: it ends with this process." },
    ];
  return [journal(connection), writable(path), ...readers(path), ...keyFile(path), ...wal(path), disk(path)];
}

function journal(connection: Connection): Finding {
  const mode = String(connection.all("PRAGMA journal_mode")[0]?.journal_mode).toLowerCase();
  const { path } = connection;
  return mode === "wal"
    ? {
        level: "ok",
        check: "journal",
        message: "The database is in WAL mode: readers and the writer do not stop each other.",
      }
    : {
        level: "problem",
        check: "journal",
        message: `The database is in ${mode} mode, in which every read stops the writer.`,
        advice: `Something set it back. Take that out, and run sqlite3 ${path} "PRAGMA journal_mode = WAL".`,
      };
}

function writable(path: string): Finding {
  const place = dirname(path);
  try {
    for (const target of [path, place]) accessSync(target, constants.W_OK);
    return { level: "ok", check: "file", message: `${path} and its directory can be written to.` };
  } catch {
    return {
      level: "problem",
      check: "file",
      message: `${path} or its directory cannot be written to by this user, so no outcome of a send can be recorded.`,
      advice: `Give the user of the server both (SQLite keeps its log beside the file): chown -R <user> ${place}`,
    };
  }
}

function readers(path: string): Finding[] {
  // Windows has no such modes.
  const stats = process.platform === "win32" ? undefined : statsOf(path);
  if (!stats || (stats.mode & 0o007) === 0) return [];
  return [
    {
      level: "note",
      check: "file",
      message: `Every user of this machine can read ${path} (mode ${modeOf(stats)}). Secrets in it are sealed, events are not.`,
      advice: `chmod o= ${path}`,
    },
  ];
}

function keyFile(path: string): Finding[] {
  const file = `${path}.key`;
  const stats = process.platform === "win32" ? undefined : statsOf(file);
  if (!stats) return [];
  return (stats.mode & 0o077) === 0
    ? [{ level: "ok", check: "key file", message: `${file} is readable by its owner alone.` }]
    : [
        {
          level: "problem",
          check: "key file",
          message: `${file} can be read by others (mode ${modeOf(stats)}): with it and the database they can read signing secrets.`,
          advice: `chmod 600 ${file}`,
        },
      ];
}

function wal(path: string): Finding[] {
  const size = statsOf(`${path}-wal`)?.size ?? 0;
  if (size < mostWalBytes) return [];
  return [
    {
      level: "problem",
      check: "log",
      message: `The log beside the database has grown to ${megabytes(size)}: a connection keeps a read transaction open, so it cannot be written back.`,
      advice: "Find the process that reads in one long transaction (a backup, a report) and end it.",
    },
  ];
}

function disk(path: string): Finding {
  const { bavail, blocks, bsize } = statfsSync(dirname(path));
  const [free, all] = [bavail * bsize, blocks * bsize];
  return free < leastFreeBytes || free / all < leastFreePart
    ? {
        level: "problem",
        check: "disk",
        message: `Only ${megabytes(free)} are free where the database is; when none are, events are refused.`,
        advice: "Make room, or shorten `retention` and run `hookwell prune`.",
      }
    : { level: "ok", check: "disk", message: `${megabytes(free)} are free where the database is.` };
}

function statsOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function modeOf({ mode }: Stats): string {
  return (mode & 0o777).toString(8).padStart(4, "0");
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 1_048_576)} MiB`;
}
