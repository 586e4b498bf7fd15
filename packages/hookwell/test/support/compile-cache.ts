import { tmpdir } from "node:os";
import { join } from "node:path";

/** NODE_COMPILE_CACHE of the processes that tests start: most of a short life is reading the same modules. */
export const compileCache = join(tmpdir(), "hookwell-test-compile-cache");
