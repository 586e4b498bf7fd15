import { z } from "zod";
import type { PublishedUser } from "./user-events.ts";

/**
 * The data of the user events: exactly the published fields. A field that is not listed here is refused at the
 * emit, so nothing reaches a body by being forgotten. Wire names are append-only.
 */
export const publishedUserSchema: z.ZodType<PublishedUser, PublishedUser> = z.strictObject({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  status: z.enum(["active", "suspended", "archived", "deleted"]).describe("deleted: the account is gone"),
  email_verified: z.boolean(),
});

export const publishedUserExample: PublishedUser = {
  id: "6f1c2b1e-8a43-4d0e-9d57-0b8f3c1f6a10",
  email: "ada@example.com",
  name: "Ada Lovelace",
  status: "active",
  email_verified: true,
};
