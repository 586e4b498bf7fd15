import { readSettings } from "hookwell/environment";
import { hooksFromSettings } from "./from-settings.ts";

const made = await hooksFromSettings(readSettings(process.env), console);

/** What `hookwell worker --config` loads: the events and the database of `npm start`, by the same settings. */
export const hooks = made.hooks;
