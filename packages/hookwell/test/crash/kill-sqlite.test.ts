import { crashSuite } from "./crash-suite.ts";
import { replaySuite } from "./replay-suite.ts";
import { reportSuite } from "./report-suite.ts";

crashSuite("sqlite");
replaySuite("sqlite");
reportSuite();
