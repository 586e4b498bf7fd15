import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("postgres", { usual: 6, long: 40 });
