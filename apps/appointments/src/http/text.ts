import { z } from "zod";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/;

/** Whether a text has what {@link text} refuses, such as NUL or a line end. */
export function hasControlCharacter(value: string): boolean {
  return controlCharacter.test(value);
}

/**
 * The application's rule for every text that somebody gives, the same on SQLite and PostgreSQL: any script and
 * any emoji, but no control characters (PostgreSQL cannot store NUL) and no half surrogate pairs (UTF-8 cannot
 * say them). Such a text is refused with the field named, never changed silently.
 */
export function text(options: { readonly max: number }) {
  return z
    .string()
    .max(options.max, `must be at most ${options.max} characters`)
    .refine(
      (value) => !hasControlCharacter(value),
      "must not contain control characters such as NUL or line ends",
    )
    .refine((value) => value.isWellFormed(), "must be well-formed Unicode (it has a lone surrogate)");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const controlOfLines = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/** The same for a text of several lines: tabs and line ends belong to it. */
export function lines(options: { readonly max: number }) {
  return z
    .string()
    .max(options.max, `must be at most ${options.max} characters`)
    .refine((value) => !controlOfLines.test(value), "must not contain control characters such as NUL")
    .refine((value) => value.isWellFormed(), "must be well-formed Unicode (it has a lone surrogate)");
}

/** A text that shows something. */
export function name() {
  return text({ max: 200 }).refine((value) => value.trim() !== "", "must not be empty");
}

export function email() {
  return text({ max: 254 }).refine(
    (value) => z.regexes.unicodeEmail.test(value),
    "must be an e-mail address",
  );
}

export function timeZone() {
  return text({ max: 64 }).refine(isTimeZone, "must be an IANA time zone such as Europe/Vienna");
}

function isTimeZone(value: string): boolean {
  // Intl also takes offsets such as +02:00, which have no daylight saving rules and are no zone names.
  if (!/^[A-Za-z]/.test(value)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: value });
    return true;
  } catch {
    return false;
  }
}
