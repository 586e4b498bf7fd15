// Packs the published packages, lints them, installs them into an empty project, and runs a program and a type
// check there, on each Node that they support.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, "node_modules/.bin", name);
const work = mkdtempSync(join(tmpdir(), "hookwell-package-"));
const run = (command, args, cwd = root) => {
  console.log(
    `$ ${[command.replace(`${root}/node_modules/.bin/`, ""), ...args].join(" ").replaceAll(work, "…")}`,
  );
  execFileSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
};

const program = `
import { DatabaseSync } from "node:sqlite";
import { createServer } from "node:http";
import { createHookwell, defineEvents, verify } from "hookwell";
import { nodeSqlite } from "hookwell/node-sqlite";
import { sqliteStore } from "hookwell/sqlite";
import { z } from "zod";

const db = new DatabaseSync("app.db");
db.exec("create table if not exists users (id text)");
const hooks = createHookwell({
  store: sqliteStore({ path: "app.db", migrate: true }),
  tx: nodeSqlite(),
  project: "live",
  network: { allow: ["127.0.0.0/8"], http: true },
  events: defineEvents({ "user.created": { schema: z.object({ id: z.string() }) } }),
});
await hooks.ready();
let secret = "";
const got = Promise.withResolvers<string>();
const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  response.end();
  try {
    got.resolve(verify(request.headers, Buffer.concat(parts), secret).id);
  } catch (error) {
    got.reject(error);
  }
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as { port: number };
({ secret } = await hooks.subscriptions.create({ url: \`http://127.0.0.1:\${port}/\`, eventTypes: ["user.*"] }));
const running = hooks.start();
const { id } = hooks.transaction(db, (tx) => {
  tx.exec("insert into users values ('u1')");
  return hooks.emitSync("user.created", { id: "u1" }, { tx });
});
if ((await got.promise) !== id) throw new Error("wrong event");
await running.stop();
await hooks.close();
server.closeAllConnections();
server.close();
console.log("delivered and verified on Node", process.version);
`;

try {
  const tarballs = [];
  for (const name of ["hookwell", "server"]) {
    const directory = join(root, "packages", name);
    rmSync(join(directory, "dist"), { recursive: true, force: true });
    execFileSync("npm", ["run", "--silent", "build"], { cwd: directory, stdio: "inherit" });
    const out = join(work, name);
    mkdirSync(out);
    execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], {
      cwd: directory,
    });
    const tarball = join(out, readdirSync(out)[0]);
    tarballs.push(tarball);
    run(bin("publint"), ["run", tarball, "--strict"]);
    run(bin("attw"), [tarball, "--profile", "esm-only"]);
  }
  for (const version of ["22", "24"]) {
    const project = join(work, `node-${version}`);
    mkdirSync(project);
    writeFileSync(
      join(project, "package.json"),
      JSON.stringify({ type: "module", private: true, allowScripts: { node: true } }),
    );
    writeFileSync(join(project, "program.ts"), program);
    run(
      "npm",
      [
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        ...tarballs,
        "zod@4",
        `node@${version}`,
        "typescript@7",
        "@types/node@24",
      ],
      project,
    );
    run(
      join(project, "node_modules/.bin/tsc"),
      [
        "--strict",
        "--target",
        "es2024",
        "--lib",
        "es2024",
        "--module",
        "nodenext",
        "--types",
        "node",
        "--skipLibCheck",
        "program.ts",
      ],
      project,
    );
    run(join(project, "node_modules/.bin/node"), ["program.js"], project);
    run(
      join(project, "node_modules/.bin/node"),
      ["node_modules/hookwell/dist/cli/main.js", "--version"],
      project,
    );
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
