import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as hookwell from "hookwell";
import { expect, test } from "vitest";

const source = resolve(dirname(fileURLToPath(import.meta.url)), "../../src");

/** Every module that loading a file loads, type imports left out. */
function loadedBy(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, clause, target] of text.matchAll(/^(?:import|export)\s([^;]*?)\sfrom\s"([^"]+)";/gm)) {
    const names = clause!.trim();
    if (names.startsWith("type ") || /^\{(\s*type [^,]+,?)+\s*\}$/.test(names)) continue;
    if (target!.startsWith(".")) loadedBy(resolve(dirname(file), target!), found);
    else found.add(target!);
  }
  return found;
}

test("the package's main entry loads undici and Node's own modules, and no database driver", () => {
  const loaded = [...loadedBy(resolve(source, "index.ts"))].filter((name) => !name.startsWith("/"));
  expect(loaded.filter((name) => !name.startsWith("node:"))).toEqual(["undici"]);
  expect(loaded).not.toContain("node:sqlite");
  const adapters = ["pg", "node-sqlite", "better-sqlite3"];
  for (const adapter of adapters)
    expect(
      [...loadedBy(resolve(source, `adapters/${adapter}.ts`))].every((name) => name.startsWith("/")),
    ).toBe(true);
});

test("the names of the reference are exported", () => {
  const values = [
    "Discard",
    "MemoryOutbox",
    "OutboxPublisher",
    "defaultRetryPolicy",
    "HttpSender",
    "Worker",
    "DeliveryExistsError",
    "createHookwell",
    "defineEvents",
    "verify",
    "verifyBodySignature",
    "HookwellError",
  ];
  for (const name of values) expect(hookwell).toHaveProperty(name, expect.any(Function));
  // Types are gone at run time: the compiler checks that they are there.
  type Reference = [
    hookwell.Delivery,
    hookwell.DeliveryStatus,
    hookwell.Event,
    hookwell.EventType,
    hookwell.FailureHook,
    hookwell.IdFunc,
    hookwell.OutboxStore,
    hookwell.Publisher,
    hookwell.RetryPolicy,
    hookwell.Sender,
    hookwell.Subscription,
    hookwell.User,
    hookwell.WorkerConfig,
  ];
  const count: Reference["length"] = 13;
  expect(count).toBe(13);
});
