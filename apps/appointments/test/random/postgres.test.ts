import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("postgres", { usual: 12, long: 40 });
