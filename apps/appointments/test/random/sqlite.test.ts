import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("sqlite", 200);
