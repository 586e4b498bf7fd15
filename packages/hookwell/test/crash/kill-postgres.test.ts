import { crashSuite } from "./crash-suite.ts";
import { replaySuite } from "./replay-suite.ts";

crashSuite("postgres");
replaySuite("postgres");
