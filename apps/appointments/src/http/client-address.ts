import { BlockList, isIP } from "node:net";
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context } from "hono";
import { ConfigurationError } from "hookwell";

/** Who is at the other end, by address, as far as that can be known. */
export type ClientAddress = (context: Context) => string;

/**
 * The address of the socket; behind proxies that the operator named, the last address of X-Forwarded-For that is not
 * one of theirs. What anybody else writes into that header does not count.
 * @param trusted addresses and networks in CIDR form, separated by commas
 * @throws ConfigurationError
 */
export function clientAddress(trusted = ""): ClientAddress {
  const proxies = new BlockList();
  for (const entry of trusted.split(",").map((part) => part.trim())) if (entry !== "") add(proxies, entry);
  const isProxy = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && proxies.check(address, family === 4 ? "ipv4" : "ipv6");
  };
  return (context) => {
    const socket = plain(getConnInfo(context).remote.address ?? "");
    if (!isProxy(socket)) return socket;
    const forwarded = (context.req.header("x-forwarded-for") ?? "")
      .split(",")
      .map((part) => plain(part.trim()));
    const client = forwarded.findLast((address) => !isProxy(address));
    return client !== undefined && isIP(client) !== 0 ? client : socket;
  };
}

/** IPv4 in IPv6 clothes is the IPv4 address. */
function plain(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}

function add(proxies: BlockList, entry: string): void {
  const [address = "", prefix] = entry.split("/");
  const family = isIP(address);
  const bits = prefix === undefined ? undefined : Number(prefix);
  const most = family === 4 ? 32 : 128;
  const isWrong = bits !== undefined && !(Number.isInteger(bits) && bits >= 0 && bits <= most);
  if (family === 0 || isWrong)
    throw new ConfigurationError(
      `TRUST_PROXY must be addresses or networks such as 10.0.0.0/8, separated by commas; ${JSON.stringify(entry)} is none.`,
    );
  const type = family === 4 ? "ipv4" : "ipv6";
  if (bits === undefined) proxies.addAddress(address, type);
  else proxies.addSubnet(address, bits, type);
}
