/** Tells the time. Everything that needs it is given one. */
export type Clock = () => Date;

/** The wall clock: the one place that reads it. */
export const systemClock: Clock = () => new Date(Date.now());
