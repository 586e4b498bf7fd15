import { z } from "zod";
import { email, name, text, timeZone } from "../http/text.ts";

/** A user about to be made. Project and status are never in a request. */
export const newUserSchema = z.strictObject({
  /** A UUID that the caller made, so that a create whose answer was lost can be told from a new one. */
  id: z
    .uuid("must be a UUID")
    .transform((id) => id.toLowerCase())
    .optional(),
  email: email(),
  name: name(),
  iana_timezone: timeZone().optional(),
  is_admin: z.boolean().optional(),
  tenant_id: text({ max: 255 }).min(1, "must not be empty").nullable().optional(),
});
export type NewUser = z.output<typeof newUserSchema>;

/** Users of one import: written together or not at all. */
export const importSchema = z.strictObject({
  users: z
    .array(newUserSchema)
    .min(1, "must have at least one user")
    .max(1000, "must have at most 1000 users"),
});

/** What a user may change of itself. */
export const ownProfileSchema = z.strictObject({
  email: email().optional(),
  name: name().optional(),
  iana_timezone: timeZone().optional(),
});

/** What an admin may change of another user. */
export const profileSchema = ownProfileSchema.extend({ is_admin: z.boolean().optional() });

export const newKeySchema = z.strictObject({ name: name() });
