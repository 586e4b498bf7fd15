import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("sqlite", { usual: 20, long: 300 });
