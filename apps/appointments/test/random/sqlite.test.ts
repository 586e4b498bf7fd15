import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("sqlite", { usual: 40, long: 300 });
