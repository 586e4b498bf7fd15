import { isIPv6 } from "node:net";
import { BlockedAddressError, ValidationError } from "../model/errors.ts";
import { AddressGuard, type NetworkOptions } from "./address-guard.ts";

const maxLength = 2048;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops these without a word
const dropped = /[\u0000-\u001f\u007f]|^\s|\s$/;

/**
 * Checks the url of an endpoint when it is saved, and gives the form to store and send to: ASCII (an
 * international name as xn--, a path percent-encoded), without a fragment. Names are not looked up: what they
 * resolve to is checked by each connection.
 * @throws ValidationError for a url that cannot be used.
 * @throws BlockedAddressError for one that points at an address, or by http at a place, that is not allowed.
 */
export function checkUrl(url: unknown, network: NetworkOptions | AddressGuard = {}, field = "url"): string {
  const guard = network instanceof AddressGuard ? network : new AddressGuard(network);
  const pointer = `/${field}`;
  const refuse = (message: string): never => {
    throw new ValidationError([{ pointer, message }]);
  };
  if (typeof url !== "string" || url === "") return refuse("must be a url");
  if (dropped.test(url)) return refuse("must not contain control characters or white space around it");
  if (!url.isWellFormed()) return refuse("must be well-formed Unicode (it has a lone surrogate)");
  const parsed = URL.canParse(url)
    ? new URL(url)
    : refuse("must be a url such as https://example.com/webhooks");
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") return refuse("must begin with https://");
  if (parsed.username !== "" || parsed.password !== "")
    return refuse(
      "must not contain a user name or password; send them in headers, as authorization: Basic …",
    );
  if (parsed.port === "0") return refuse("must not have port 0");
  parsed.hash = "";
  if (parsed.href.length > maxLength) return refuse(`must be at most ${maxLength} characters when encoded`);

  const problem = refusalOf(parsed, guard);
  if (problem) throw new BlockedAddressError(problem, pointer);
  return parsed.href;
}

/** Why the guard refuses this url for what can be seen without a look-up; undefined when it does not. */
export function refusalOf(url: URL, guard: AddressGuard): string | undefined {
  const host = hostOf(url);
  if (isAddress(url)) {
    const reason = guard.refusal(host, url.protocol);
    return reason && `points at ${host}, ${reason}`;
  }
  if (/(^|\.)localhost\.?$/.test(host)) {
    const reasons = ["127.0.0.1", "::1"].map((address) => guard.refusal(address, url.protocol));
    if (reasons.every((reason) => reason !== undefined)) return `points at ${host}, ${reasons[0]}`;
  }
  if (url.protocol === "http:" && !guard.http && !guard.hasAllowedNetworks)
    return "must begin with https://; plain http is sent only into networks named in HOOKWELL_ALLOW_NETWORKS (network.allow), or in development mode (--dev)";
  return undefined;
}

/** The host as a name or a bare address, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
}

/** True when the host is an address. The URL parser has already turned 0x7f.1 and the like into one. */
export function isAddress(url: URL): boolean {
  return isIPv6(hostOf(url)) || /^\d+\.\d+\.\d+\.\d+$/.test(url.hostname);
}
