/** After it led nowhere, a short way is left alone so many times. */
const timesAfter = 32;

/**
 * A statement for the usual case, beside the one for all cases, which takes the server far longer to plan. Where
 * the usual case is not there the short one does nothing and says so, and is not tried again for a while.
 */
export class ShortWay {
  #closedFor = 0;

  /** Whether to try it now. */
  tries(): boolean {
    if (this.#closedFor === 0) return true;
    this.#closedFor--;
    return false;
  }

  /** It led nowhere. */
  close(): void {
    this.#closedFor = timesAfter;
  }
}
