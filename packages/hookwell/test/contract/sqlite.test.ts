import { storeContract } from "hookwell/testing";
import { describe, test } from "vitest";
import { sqliteHarness } from "./harnesses.ts";

storeContract("SQLite", sqliteHarness, { describe, test });
