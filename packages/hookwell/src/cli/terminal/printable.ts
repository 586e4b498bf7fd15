/** Control characters, and those that change the direction of what follows. */
const steering = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text from outside as it may be shown: it must not steer the terminal. Line feeds and tabs stay. */
export function printable(text: string): string {
  return text.replace(steering, (character) =>
    character === "\n" || character === "\t" ? character : escaped(character),
  );
}

/** The same in one line. */
export function printableLine(text: string): string {
  return printable(text.replace(/\s+/gu, " "));
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}
