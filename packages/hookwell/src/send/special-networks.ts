import { contains, type IpAddress, low32, type Network, parseNetwork } from "./ip-address.ts";

// Blocks of the IANA special-purpose registries that are not globally reachable unicast, and what to call them.
const special: readonly (readonly [Network, string])[] = (
  [
    ["0.0.0.0/8", "unspecified"],
    ["10.0.0.0/8", "private"],
    ["100.64.0.0/10", "carrier-grade NAT"],
    ["127.0.0.0/8", "loopback"],
    ["169.254.0.0/16", "link-local"],
    ["172.16.0.0/12", "private"],
    ["192.0.0.0/24", "reserved"],
    ["192.0.2.0/24", "documentation"],
    ["192.88.99.0/24", "reserved"],
    ["192.168.0.0/16", "private"],
    ["198.18.0.0/15", "benchmark"],
    ["198.51.100.0/24", "documentation"],
    ["203.0.113.0/24", "documentation"],
    ["224.0.0.0/4", "multicast"],
    ["240.0.0.0/4", "reserved"],
    ["::/128", "unspecified"],
    ["::1/128", "loopback"],
    ["100::/64", "discard"],
    ["fc00::/7", "unique-local"],
    ["fe80::/10", "link-local"],
    ["fec0::/10", "site-local"],
    ["ff00::/8", "multicast"],
    ["2001::/23", "reserved"],
    ["2001:db8::/32", "documentation"],
    ["3fff::/20", "documentation"],
  ] as const
).map(([text, name]) => [network(text), name]);

const globalUnicast = network("2000::/3");
const nat64 = network("64:ff9b::/96");
const sixToFour = network("2002::/16");
const teredo = network("2001::/32");

/**
 * What kind of special address it is ("loopback", "private", …), or undefined for public unicast. An address
 * that stands for IPv4 ones (NAT64, 6to4, Teredo) is what they are.
 */
export function specialKind(address: IpAddress): string | undefined {
  const carried = carriedIPv4(address);
  if (carried) return carried.map(specialKind).find((kind) => kind !== undefined);
  const found = special.find(([block]) => contains(block, address));
  if (found) return found[1];
  // Everything the registries have not handed out as global unicast is reserved, now and in years to come.
  return address.family === 6 && !contains(globalUnicast, address) ? "reserved" : undefined;
}

/** The IPv4 addresses that packets to this IPv6 address end up at, when it is of a form that carries them. */
export function carriedIPv4(address: IpAddress): IpAddress[] | undefined {
  const { value } = address;
  if (contains(nat64, address)) return [ipv4(value)];
  if (contains(sixToFour, address)) return [ipv4(value >> 80n)];
  // Teredo: the server in the clear and the client with its bits flipped.
  if (contains(teredo, address)) return [ipv4(value >> 64n), ipv4(~value)];
  return undefined;
}

function ipv4(value: bigint): IpAddress {
  return { family: 4, value: low32(value) };
}

function network(text: string): Network {
  const parsed = parseNetwork(text);
  if (!parsed) throw new TypeError(`${text} is no network`);
  return parsed;
}
