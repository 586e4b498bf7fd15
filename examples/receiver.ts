// The example of docs/guides/receiving.md: a receiver that checks, deduplicates and answers. examples.test.ts runs it.
import { createServer } from "node:http";
import { VerificationError, verify } from "hookwell";

export function makeReceiver(secret: string, handle: (id: string, event: unknown) => Promise<void>) {
  const seen = new Set<string>(); // in a real service: a unique column, written with the effect

  return createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    try {
      const { id, payload } = verify(request.headers, Buffer.concat(chunks), secret);
      if (!seen.has(id)) {
        await handle(id, payload);
        seen.add(id);
      }
      response.writeHead(204).end();
    } catch (error) {
      response.writeHead(error instanceof VerificationError ? 401 : 500).end();
    }
  });
}
