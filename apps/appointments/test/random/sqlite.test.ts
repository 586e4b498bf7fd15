import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("sqlite", Number(process.env.HOOKWELL_RUNS ?? 200));
