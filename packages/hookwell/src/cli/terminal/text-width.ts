const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const invisible = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** Cells that a text takes in a terminal; what cannot be known of fonts is guessed. */
export function textWidth(text: string): number {
  // Most texts are ids and times.
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += invisible.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** The text cut to so many cells; "…" stands for what is missing. */
export function cutToWidth(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += textWidth(character);
    if (width > most - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

export function padToWidth(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** Lines of whole words, none wider than `most` unless one word is. */
export function wrap(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && textWidth(line) + 1 + textWidth(word) > most) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
