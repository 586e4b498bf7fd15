const maxLength = 300;

/**
 * An error's words as they may be stored and logged: what another system said may quote a mail or an address, and
 * with it a link that lets its owner manage a booking.
 */
export function safeReason(error: unknown, secrets: readonly string[] = []): string {
  let text = error instanceof Error ? error.message : String(error);
  for (const secret of secrets) if (secret !== "") text = text.replaceAll(secret, "[hidden]");
  return (
    text
      .replaceAll(/[a-z][a-z0-9+.-]*:\/\/\S*/gi, "[address]")
      .replaceAll(/\/(?:s|manage|schedule)\/\S*/gi, "[address]")
      .replaceAll(/[0-9a-f]{32,}/gi, "[hidden]")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
      .replaceAll(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ")
      .toWellFormed()
      .slice(0, maxLength)
  );
}
