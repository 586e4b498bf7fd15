import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { bodySignature } from "../../src/send/signatures.ts";
import { Cli, run } from "./processes.ts";

const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;

/** Sends what a sender with this secret would; the independent library makes the standard signature. */
async function post(url: string, id: string, body: string, signer = secret): Promise<number> {
  const at = new Date();
  const response = await fetch(`${url}/any/path`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
      "webhook-signature": new Webhook(signer).sign(id, at, body),
      "x-hookwell-signature": bodySignature(signer, Buffer.from(body)),
      "x-hookwell-event": "user.created",
      "x-hookwell-delivery": "dlv_1",
      "x-hookwell-attempt": "1",
    },
    body,
  });
  return response.status;
}

describe("hookwell listen", () => {
  test("prints each webhook, whether both signatures verify, and whether it is a repeat; Ctrl-C ends it with 0", async () => {
    await using cli = new Cli(["listen", "--port", "0", "--secret", secret]);
    const url = await cli.url();
    expect(await post(url, "evt_1", '{"n":9007199254740993}')).toBe(204);
    await cli.waitFor(/"n":9007199254740993/);
    expect(cli.stdout).toMatch(
      /POST \/any\/path {2}user\.created\n {2}event {6}evt_1\n {2}delivery {3}dlv_1, attempt 1\n/,
    );
    expect(cli.stdout.match(/signature verified/g)).toHaveLength(2);
    expect(cli.stdout).not.toContain("REPEAT");
    expect(await post(url, "evt_1", '{"n":9007199254740993}')).toBe(204);
    await cli.waitFor(/evt_1 {2}REPEAT, seen 1 time before/);
    expect(await cli.stop("SIGINT")).toMatchObject({ code: 0 });
  });

  test("a wrong secret, a changed body and missing headers are not verified: 401", async () => {
    await using cli = new Cli(["listen", "--port", "0", "--secret", secret]);
    const url = await cli.url();
    expect(await post(url, "evt_1", "{}", `whsec_${Buffer.alloc(32, 6).toString("base64")}`)).toBe(401);
    await cli.waitFor(/standard {3}NOT VERIFIED: no_match/);
    await cli.waitFor(/body {7}NOT VERIFIED/);
    expect((await fetch(url, { method: "POST", body: "hello" })).status).toBe(401);
    await cli.waitFor(/NOT VERIFIED: missing_header/);
  });

  test("several secrets, as during a rotation: either fits", async () => {
    const old = "a-plain-secret-that-is-being-replaced";
    await using cli = new Cli(["listen", "--port", "0", "--secret", secret, "--secret", old]);
    expect(await post(await cli.url(), "evt_1", "{}")).toBe(204);
  });

  test("--status plays a broken receiver, and without secrets nothing is claimed to be verified", async () => {
    await using cli = new Cli(["listen", "--port", "0", "--status", "503"]);
    expect(await post(await cli.url(), "evt_1", "{}")).toBe(503);
    await cli.waitFor(/not checked/);
    await cli.waitFor(/evt_1/);
    expect(cli.stdout).not.toContain("verified");
  });

  test("what comes in cannot steer the terminal", async () => {
    await using cli = new Cli(["listen", "--port", "0"]);
    await fetch(await cli.url(), { method: "POST", body: "\u001b[2J\u0007\u009b31mred" });
    await cli.waitFor(/\\x1b\[2J\\x07\\x9b31mred/);
    expect(cli.stdout).not.toContain("\u001b");
  });

  test("a port in use is one sentence: exit 1", async () => {
    await using cli = new Cli(["listen", "--port", "0"]);
    const { port } = new URL(await cli.url());
    const second = await run(["listen", "--port", port]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`port ${port}: another program uses it`);
  });
});
