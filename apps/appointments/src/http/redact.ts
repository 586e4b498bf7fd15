/** Paths that carry a token; what follows the prefix, up to the next part, is the token. */
const tokenPaths = /\/(v1\/schedule|s|manage)\/+[^/?#\s"]*/gi;
/** A token anywhere else: 64 hex digits, which is also what a hash of one looks like. */
const tokens = /[0-9a-f]{64}/gi;

/** A text for a log: the tokens of customers in it, and the addresses that they open, are taken out. */
export function redact(text: string): string {
  return decoded(text).replaceAll(tokenPaths, "/$1:[token]").replaceAll(tokens, "[token]");
}

/** A path may be percent-encoded to look like another one. */
function decoded(text: string): string {
  return text.replaceAll(/%[2-7][0-9a-f]/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w/.:-]/.test(character) ? character : encoded;
  });
}
