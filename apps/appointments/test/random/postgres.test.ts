import { transitionsSuite } from "./transitions-suite.ts";

transitionsSuite("postgres", 12);
