import { invalidRequest } from "./problems.ts";

/** Conditions of a request (RFC 9110, section 13) on the entity tag of what it names. */
export interface EntityTag {
  readonly weak: boolean;
  readonly tag: string;
}

/** The entity tag of a version. Strong: a version names the content and nothing else. */
export function entityTag(version: string): string {
  return `"${version}"`;
}

/**
 * The versions that `If-Match` lets be changed; undefined without a condition, and for `*`, which asks only that the
 * thing is there. A weak tag never matches, so it leaves none.
 * @throws ProblemError 400 for what is no entity tag: a condition is never ignored
 */
export function versionsOf(ifMatch: string | null): readonly string[] | undefined {
  if (ifMatch === null || ifMatch.trim() === "*") return undefined;
  return entityTags(ifMatch, "if-match")
    .filter(({ weak }) => !weak)
    .map(({ tag }) => tag);
}

/** True when `If-None-Match` names the entity tag: the caller has it already. Weak comparison. */
export function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return entityTags(ifNoneMatch, "if-none-match").some(({ tag }) => entityTag(tag) === etag);
}

function entityTags(header: string, name: string): EntityTag[] {
  const tags: EntityTag[] = [];
  // Each one with the comma behind it; empty list elements are allowed.
  const element = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)")?[ \t]*(?:,|$)/y;
  while (element.lastIndex < header.length) {
    const found = element.exec(header);
    if (!found)
      throw invalidRequest([
        { pointer: `/${name}`, message: 'must be "*" or entity tags as ETag gave them, with their quotes' },
      ]);
    if (found[2] !== undefined) tags.push({ weak: found[1] !== undefined, tag: found[2] });
  }
  return tags;
}
