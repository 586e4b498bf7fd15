const cutMark = "… [cut]";
// Everything a terminal or a database could stumble over; tab and line breaks stay.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
const unprintable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** Text from outside on one line, at most `length` characters, without control characters. */
export function oneLine(text: string, length: number): string {
  return text.replace(/\s+/g, " ").replace(unprintable, "\ufffd").slice(0, length).toWellFormed();
}

/**
 * What is kept of an answer: the first `keepBytes` of it as text that every store can hold. Broken UTF-8 and
 * control characters become U+FFFD, `hidden` texts become [redacted], and a mark shows that there was more.
 */
export function excerptOf(
  read: Uint8Array,
  total: number,
  keepBytes: number,
  hidden: readonly string[],
): string | undefined {
  if (total === 0) return undefined;
  // In stream mode the decoder leaves out a character that the end of the bytes cuts in two.
  let text = new TextDecoder().decode(read, { stream: total > read.length });
  for (const secret of hidden) text = text.replaceAll(secret, "[redacted]");
  const clean = text.replace(unprintable, "\ufffd");
  const bytes = Buffer.from(clean, "utf8");
  const fits = bytes.length <= keepBytes && total <= read.length;
  if (fits) return clean;
  return new TextDecoder().decode(bytes.subarray(0, keepBytes), { stream: true }) + cutMark;
}
