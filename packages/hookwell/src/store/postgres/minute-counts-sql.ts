import { minuteMs } from "../minute-counts.ts";

/**
 * An INSERT that counts the rows of `rows` into the minute of `t.now`, by project and for all together; the last
 * thing that a statement locks. Its rows are the caller's own: see slots.ts.
 *
 * @param rows FROM item with project_id
 * @param slot parameter, text
 * @param counted which rows count as what; a part left out is 0
 */
export function countMinuteSql(
  s: string,
  rows: string,
  slot: string,
  counted: Readonly<Partial<Record<"dispatched" | "delivered" | "failed_attempts" | "failed", string>>>,
): string {
  const sum = (part: keyof typeof counted): string =>
    counted[part] === undefined ? "0" : `count(*) FILTER (WHERE ${counted[part]})`;
  const columns = ["dispatched", "delivered", "failed_attempts", "failed"] as const;
  const any = columns.flatMap((column) => (counted[column] === undefined ? [] : [`(${counted[column]})`]));
  return `INSERT INTO ${s}.minute_count AS c (minute, project_id, slot, ${columns.join(", ")})
SELECT (SELECT now FROM t) / ${minuteMs}, coalesce(r.project_id, ''), ${slot}::text, ${columns.map(sum).join(", ")}
FROM ${rows} r WHERE ${any.join(" OR ")}
GROUP BY GROUPING SETS ((r.project_id), ())
HAVING count(*) > 0 AND (GROUPING(r.project_id) = 1 OR r.project_id <> '')
ORDER BY 2
ON CONFLICT (minute, project_id, slot) DO UPDATE SET
  ${columns.map((column) => `${column} = c.${column} + excluded.${column}`).join(",\n  ")}`;
}
