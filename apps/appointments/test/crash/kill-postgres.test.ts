import { crashSuite } from "./crash-suite.ts";

crashSuite("postgres");
