import { loggerFromSettings, readSettings } from "hookwell/environment";
import { hooksFromSettings } from "./from-settings.ts";

const settings = readSettings(process.env);
const made = await hooksFromSettings(settings, loggerFromSettings(settings));

/** What `hookwell worker --config` loads: the events and the database of `npm start`, by the same settings. */
export const hooks = made.hooks;
