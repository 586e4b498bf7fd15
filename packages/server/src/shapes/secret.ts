import { z } from "@hono/zod-openapi";

export const secretRotation = z
  .strictObject({
    overlap_seconds: z.int().min(0).max(2_592_000).optional().openapi({
      description:
        "How long the older secrets stay valid at most; 0 ends them now. Absent = 86,400 (24 hours).",
    }),
    secret: z.string().min(1).max(256).optional().openapi({
      description:
        "`whsec_` and base64 of 24 to 64 bytes, or plain text. Absent = made for you. One that is valid already becomes the first again.",
    }),
  })
  .openapi("SecretRotation");

export const rotatedSecret = z
  .strictObject({
    secret: z.string().openapi({ description: "Signs from now on. Shown here and never again." }),
  })
  .openapi("RotatedSecret");
