/** A number from 0 up to, but not including, 1. Used for jitter only, never for secrets. */
export type Random = () => number;

/** The runtime's generator: the one place that reads it. */
export const systemRandomNumber: Random = () => Math.random();
