import { ConfigurationError } from "hookwell";

/** Settings of the application itself, beside those of Hookwell. */
export interface AppSettings {
  /** ORDINARY_BOOKINGS: whether bookings without an invitation have their events captured too. */
  readonly captureOrdinary: boolean;
  /** TRUST_PROXY: proxies whose X-Forwarded-For counts; addresses and networks, separated by commas. */
  readonly trustProxy?: string;
  /** PUBLIC_URL: where customers reach the application, for the links in answers and mails. */
  readonly publicUrl?: string;
}

/** @throws ConfigurationError */
export function readAppSettings(environment: Readonly<Record<string, string | undefined>>): AppSettings {
  const ordinary = environment.ORDINARY_BOOKINGS ?? "";
  if (!["", "published", "captured"].includes(ordinary))
    throw new ConfigurationError(
      'ORDINARY_BOOKINGS must be "captured" (with the transition) or "published" (after it, the default).',
    );
  const trustProxy = environment.TRUST_PROXY?.trim() ?? "";
  const publicUrl = environment.PUBLIC_URL?.trim().replace(/\/+$/, "") ?? "";
  if (publicUrl !== "" && !/^https?:$/.test(URL.parse(publicUrl)?.protocol ?? ""))
    throw new ConfigurationError("PUBLIC_URL must be an http(s) address such as https://book.example.com.");
  return {
    captureOrdinary: ordinary === "captured",
    ...(trustProxy === "" ? {} : { trustProxy }),
    ...(publicUrl === "" ? {} : { publicUrl }),
  };
}
