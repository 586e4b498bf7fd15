import { crashSuite } from "./crash-suite.ts";
import { replaySuite } from "./replay-suite.ts";

crashSuite("sqlite");
replaySuite("sqlite");
