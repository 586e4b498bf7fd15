import { createServer, type IncomingMessage } from "node:http";
import { ConfigurationError } from "../model/errors.ts";
import { readFlags, readPort } from "./arguments.ts";
import { type Command, exitCodesHelp, type Terminal, UsageError } from "./command.ts";
import { describeWebhook, SeenWebhooks } from "./describe-webhook.ts";
import { stopOnSignal } from "./stop-on-signal.ts";

const help = `hookwell listen: a receiver on this machine that shows each webhook

  hookwell listen [--port <port>] [--secret <secret>]… [--status <status>]

Options
  --port <port>       port on 127.0.0.1; default 8790, 0 = a free one
  --secret <secret>   signing secret of the subscription; repeat it for several (during a rotation)
  --status <status>   what to answer, 200 to 599; default 204, and 401 when no secret fits
  --help

For each webhook it prints the event, whether both signatures verify (the Standard Webhooks one with its timestamp,
and the one over the body), and whether it is a repeat of an event it has seen since it started. Other people of this
machine can see a secret on a command line: use it for development.

The sender must be allowed to reach this machine: start it with --dev.

${exitCodesHelp}`;

const maxBytes = 1_048_576;

export const listen: Command = {
  name: "listen",
  summary: "receive webhooks on this machine, print and verify them",
  help,
  async run(args, terminal) {
    const flags = readFlags(args, {
      port: { type: "string" },
      secret: { type: "string", multiple: true },
      status: { type: "string" },
    });
    const port = readPort(flags.port, "--port") ?? 8790;
    const secrets = flags.secret ?? [];
    if (secrets.some((secret) => secret.trim() === "")) throw new UsageError("--secret must not be empty.");
    const close = await receive(port, secrets, readStatus(flags.status), terminal);
    stopOnSignal(close, { info: terminal.note, warn: terminal.note, error: terminal.note });
    return undefined;
  },
};

function readStatus(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[2-5]\d\d$/.test(text)) throw new UsageError("--status must be a number from 200 to 599.");
  return Number(text);
}

async function receive(
  port: number,
  secrets: readonly string[],
  status: number | undefined,
  terminal: Terminal,
): Promise<() => Promise<void>> {
  const seen = new SeenWebhooks();
  const server = createServer((request, response) => {
    readBody(request).then(
      (body) => {
        const { lines, verified } = describeWebhook(request, body, secrets, seen);
        for (const line of lines) terminal.print(line);
        response.writeHead(status ?? (verified === false ? 401 : 204)).end();
      },
      (error: unknown) => {
        terminal.note(`A request was not read: ${error instanceof Error ? error.message : String(error)}`);
        response.writeHead(413, { connection: "close" }).end();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "EADDRINUSE"
          ? new ConfigurationError(
              `Cannot listen on port ${port}: another program uses it. Choose another with --port.`,
              "port_in_use",
            )
          : error,
      ),
    );
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  terminal.print(`Receiving on http://127.0.0.1:${bound}/ (any path)`);
  if (secrets.length === 0) terminal.note("No --secret was given, so signatures are not checked.");
  return async () => {
    server.close();
    server.closeAllConnections();
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new Error(`the body is over ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
