// The three forms of HTTP dates (RFC 9110, 5.6.7). Date.parse alone takes "-5" for a date.
const dates = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

/**
 * Milliseconds that a Retry-After header asks for, from `now`. Undefined when it is malformed, negative or past.
 * There is no upper bound here: the retry policy has one.
 */
export function parseRetryAfter(value: string, now: Date): number | undefined {
  const text = value.trim();
  if (/^\d+$/.test(text)) {
    const ms = Number(text) * 1000;
    return Number.isSafeInteger(ms) ? ms : undefined;
  }
  if (!dates.some((form) => form.test(text))) return undefined;
  const ms = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) - now.getTime();
  return ms > 0 ? ms : undefined;
}
