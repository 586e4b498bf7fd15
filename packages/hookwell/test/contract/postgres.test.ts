import { storeContract } from "hookwell/testing";
import { afterAll, beforeAll, describe, test } from "vitest";
import { PostgresHarness } from "./harnesses.ts";

const harness = new PostgresHarness();
beforeAll(() => harness.start());
afterAll(() => harness.stop());

storeContract("PostgreSQL", harness, { describe, test });
