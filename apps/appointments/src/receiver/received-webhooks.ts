import { verify, verifyBodySignature } from "hookwell";
import type { AppDatabase, ReceivedWebhooksTable } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";

/** Rows kept for each receiver; older ones go. */
const kept = 1_000;
/** Of a body, in characters. */
const keptBody = 262_144;
const keptHeader = 200;

export interface ReceivedWebhooks {
  /** Verifies and keeps one request; answers what is kept of it. */
  record(
    receiver: string,
    secret: string,
    headers: Headers,
    body: Uint8Array,
  ): Promise<ReceivedWebhooksTable>;
  /** Newest first. */
  list(limit: number): Promise<ReceivedWebhooksTable[]>;
}

export interface ReceivedWebhooksDeps {
  readonly db: AppDatabase;
  readonly now: () => Date;
  readonly newId: () => string;
}

export function receivedWebhooks({ db, now, newId }: ReceivedWebhooksDeps): ReceivedWebhooks {
  return {
    async record(receiver, secret, headers, body) {
      const header = (name: string): string => (headers.get(name) ?? "").slice(0, keptHeader);
      const signatureFault = fault(() => verify(headers, body, secret, { now }));
      const bodySignatureFault = verifyBodySignature(body, headers.get("x-hookwell-signature"), secret)
        ? ""
        : "x-hookwell-signature is missing or was not made with this secret over this body";
      const webhookId = header("webhook-id");
      return await inTransaction(db, async (trx) => {
        // Only what was verified counts as seen: otherwise anybody could make a real webhook look like a repeat.
        const seen = await trx
          .selectFrom("received_webhooks")
          .select("id")
          .where("receiver", "=", receiver)
          .where("webhook_id", "=", webhookId)
          .where("signature_fault", "=", "")
          .executeTakeFirst();
        const row: ReceivedWebhooksTable = {
          id: newId(),
          receiver,
          received_at: now().toISOString(),
          webhook_id: webhookId,
          delivery_id: header("x-hookwell-delivery"),
          attempt: header("x-hookwell-attempt"),
          event_type: header("x-hookwell-event"),
          signature_fault: signatureFault.slice(0, keptHeader * 2),
          body_signature_fault: bodySignatureFault,
          is_repeat: seen === undefined ? 0 : 1,
          body: new TextDecoder().decode(body).replaceAll("\u0000", "\ufffd").slice(0, keptBody),
        };
        await trx.insertInto("received_webhooks").values(row).execute();
        await trx
          .deleteFrom("received_webhooks")
          .where("receiver", "=", receiver)
          .where("id", "in", (old) =>
            old
              .selectFrom("received_webhooks as older")
              .select("older.id")
              .where("older.receiver", "=", receiver)
              .orderBy("older.received_at", "desc")
              .orderBy("older.id", "desc")
              .limit(100)
              .offset(kept),
          )
          .execute();
        return row;
      });
    },
    list: (limit) =>
      db
        .selectFrom("received_webhooks")
        .selectAll()
        .orderBy("received_at", "desc")
        .orderBy("id", "desc")
        .limit(limit)
        .execute(),
  };
}

/** "" or why it was refused. */
function fault(verifying: () => unknown): string {
  try {
    verifying();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
