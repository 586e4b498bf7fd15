import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("sqlite", { usual: 12, long: 300 });
