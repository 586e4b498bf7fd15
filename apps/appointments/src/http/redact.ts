/** Paths that carry a token; what follows the prefix, up to the next part, is the token. */
const tokenPaths = /\/(v1\/schedule|s|manage)\/+[^/?#\s"]*/gi;
/** A token anywhere else: 64 hex digits, which is also what a hash of one looks like. */
const tokens = /[0-9a-f]{64}/gi;
/** What would begin another line of a log, or be read by a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** One line for a log: the tokens of customers in it, and the addresses that they open, are taken out. */
export function redact(text: string): string {
  return decoded(text)
    .replaceAll(tokenPaths, "/$1:[token]")
    .replaceAll(tokens, "[token]")
    .replaceAll(controls, encodeURIComponent);
}

/** A path may be percent-encoded to look like another one. */
function decoded(text: string): string {
  return text.replaceAll(/%[2-7][0-9a-f]/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w/.:-]/.test(character) ? character : encoded;
  });
}
