/** The id of an operational event, as {@link operationalInput} makes it. */
export function operationalIdSql(type: string, about: string, now: string): string {
  return `'evt_' || left(encode(sha256(convert_to(${type} || chr(31) || ${about} || chr(31) || ${now}, 'UTF8')), 'hex'), 32)`;
}
