import { storeContract } from "hookwell/testing";
import { describe, test } from "vitest";
import { memoryHarness } from "./harnesses.ts";

storeContract("memory", memoryHarness, { describe, test });
