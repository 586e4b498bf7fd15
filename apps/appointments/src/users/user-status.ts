export type UserStatus = "active" | "suspended" | "archived";

/** The machine of a user's status; every other transition is refused. The same status again is no transition. */
const transitions: Readonly<Record<UserStatus, readonly UserStatus[]>> = {
  active: ["suspended", "archived"],
  suspended: ["active", "archived"],
  archived: ["active"],
};

export function canChangeStatus(from: UserStatus, to: UserStatus): boolean {
  return from === to || transitions[from].includes(to);
}
