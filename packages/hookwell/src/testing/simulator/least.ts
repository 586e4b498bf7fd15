/** What each seed has at least. */
export const least = { events: 50, subscriptions: 5, workers: 2, faults: 3 };
