import { ConfigurationError } from "hookwell";
import { readSettings, settings } from "hookwell/environment";
import { describe, expect, test } from "vitest";

describe("settings", () => {
  test("absent and empty variables take the default", () => {
    const empty = Object.fromEntries(settings.map(({ name }) => [name, ""]));
    expect(readSettings(empty)).toEqual(readSettings({}));
    expect(readSettings({})).toMatchObject({
      port: 8787,
      healthPort: 8788,
      dataDir: "./data",
      databaseUrl: undefined,
      worker: true,
      maxLagMs: 300_000,
    });
  });

  test("HOOKWELL_DATABASE_URL holds over DATABASE_URL", () => {
    const DATABASE_URL = "postgres://a/app";
    expect(readSettings({ DATABASE_URL }).databaseUrl).toBe(DATABASE_URL);
    const HOOKWELL_DATABASE_URL = "postgresql://b/hooks";
    expect(readSettings({ DATABASE_URL, HOOKWELL_DATABASE_URL }).databaseUrl).toBe(HOOKWELL_DATABASE_URL);
  });

  test.each([
    ["500ms", 500],
    ["45s", 45_000],
    ["2m", 120_000],
    ["5 min", 300_000],
    ["1.5h", 5_400_000],
    ["90", 90_000],
  ])("HOOKWELL_MAX_LAG=%s is %d ms", (text, ms) => {
    expect(readSettings({ HOOKWELL_MAX_LAG: text }).maxLagMs).toBe(ms);
  });

  test.each([
    ["PORT", "http"],
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["HOOKWELL_HEALTH_PORT", "1e3"],
    ["HOOKWELL_WORKER", "false"],
    ["HOOKWELL_MAX_LAG", "soon"],
    ["HOOKWELL_MAX_LAG", "0s"],
    ["HOOKWELL_MAX_LAG", "400d"],
    ["DATABASE_URL", "mysql://root:hunter2@db/app"],
    ["HOOKWELL_API_KEY", "short"],
    ["HOOKWELL_API_KEY", "long enough but with spaces"],
    ["HOOKWELL_API_KEY", "long-enough-with-a-line-feed\n"],
  ])("%s=%j is refused by name", (name, value) => {
    expect(() => readSettings({ [name]: value })).toThrow(ConfigurationError);
    expect(() => readSettings({ [name]: value })).toThrow(new RegExp(`^${name} must `));
  });

  test("all faults are told at once, and no secret is quoted", () => {
    const faulty = {
      PORT: "x",
      HOOKWELL_WORKER: "y",
      HOOKWELL_API_KEY: "hunter2",
      DATABASE_URL: "mysql://a:hunter3@b",
    };
    try {
      readSettings(faulty);
      expect.unreachable();
    } catch (error) {
      const { message, code } = error as ConfigurationError;
      expect(code).toBe("invalid_setting");
      for (const name of Object.keys(faulty)) expect(message).toContain(name);
      expect(message).not.toContain("hunter");
    }
  });
});
