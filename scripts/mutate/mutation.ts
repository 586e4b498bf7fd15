/**
 * A fault of one line in the code, and the acceptance item whose tests must then fail. Not one of the tables of
 * PostgreSQL: test databases are copies of one that was made before it.
 */
export interface Mutation {
  /** What is wrong afterwards. */
  readonly name: string;
  readonly file: string;
  /** Occurs once in the file. It may have lines around the one that changes, to say which it is. */
  readonly from: string;
  readonly to: string;
  /**
   * As tests carry it: "events 17", "field-faults D9", "bookings 3". Where the acceptance lists have nothing, words
   * from the name of the test that promises it.
   */
  readonly item: string;
}

export const library = "packages/hookwell/src";
