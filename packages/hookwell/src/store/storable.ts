/**
 * A text from outside (an answer, an error message) as every store can keep it: NUL and lone surrogates become
 * U+FFFD.
 */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll("\u0000", "\ufffd");
}
