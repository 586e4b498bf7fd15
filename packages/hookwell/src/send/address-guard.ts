import { ConfigurationError } from "../model/errors.ts";
import { contains, type IpAddress, type Network, parseAddress, parseNetwork } from "./ip-address.ts";
import { carriedIPv4, specialKind } from "./special-networks.ts";

/** Where webhooks may go besides public addresses over https. */
export interface NetworkOptions {
  /** Networks in CIDR form that are allowed although they are not public (HOOKWELL_ALLOW_NETWORKS). */
  readonly allow?: readonly string[];
  /** Allows http: urls to every allowed address. Development only. */
  readonly http?: boolean;
}

/** Development mode: this machine, over http too. */
export const developmentNetwork: NetworkOptions = { allow: ["127.0.0.0/8", "::1/128"], http: true };

/** Reads the value of HOOKWELL_ALLOW_NETWORKS: networks separated by commas or white space. */
export function parseNetworkList(text: string): string[] {
  return text.split(/[\s,]+/).filter((entry) => entry !== "");
}

/**
 * Decides which addresses a webhook may be sent to, by the address itself and never by how it was written or
 * which name led to it.
 */
export class AddressGuard {
  /** Plain http is allowed to every allowed address. */
  readonly http: boolean;
  readonly #allow: readonly Network[];

  /** @throws ConfigurationError for an entry that is no network. */
  constructor(options: NetworkOptions = {}) {
    this.http = options.http ?? false;
    this.#allow = (options.allow ?? []).map((entry) => {
      const network = parseNetwork(entry);
      if (network) return network;
      throw new ConfigurationError(
        `${JSON.stringify(entry)} in HOOKWELL_ALLOW_NETWORKS (network.allow) is not a network such as 10.0.0.0/8 or fd00::/8.`,
      );
    });
  }

  /** True when an operator named networks: http is then possible, inside them. */
  get hasAllowedNetworks(): boolean {
    return this.#allow.length > 0;
  }

  /**
   * Why nothing may be sent to this address (text of an IPv4 or IPv6 address) over this protocol; undefined
   * when it may. The reason continues a sentence that begins with the destination and names the setting.
   */
  refusal(address: string, protocol: string): string | undefined {
    const parsed = parseAddress(address);
    if (!parsed) return "which is not an IP address";
    if (this.#isNamed(parsed)) return undefined;
    const kind = specialKind(parsed);
    if (kind)
      return `which is not public (${kind}); an operator can open its network with HOOKWELL_ALLOW_NETWORKS (network.allow)`;
    if (protocol === "http:" && !this.http)
      return "which is public, and plain http is sent only into networks named in HOOKWELL_ALLOW_NETWORKS (network.allow); use https";
    return undefined;
  }

  #isNamed(address: IpAddress): boolean {
    if (this.#allow.some((network) => contains(network, address))) return true;
    const carried = carriedIPv4(address);
    return carried?.every((inner) => this.#isNamed(inner)) ?? false;
  }
}
