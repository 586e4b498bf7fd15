import { isIPv4, isIPv6 } from "node:net";

/** An address as a number, so that every way to write it is the same. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** A CIDR block: the addresses whose first `bits` bits are those of `value`. */
export interface Network extends IpAddress {
  readonly bits: number;
}

const mappedPrefix = 0xffffn;

/** Undefined when the text is no address. An IPv4-mapped IPv6 address (`::ffff:0:0/96`) is its IPv4 address. */
export function parseAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, value: parseIPv4(text) };
  const bare = text.split("%", 1)[0] as string;
  if (!isIPv6(bare)) return undefined;
  const value = parseIPv6(bare);
  return value >> 32n === mappedPrefix ? { family: 4, value: low32(value) } : { family: 6, value };
}

/** Reads `address/bits` or a single address; host bits may be set. Undefined when it is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [address = "", length, ...rest] = text.split("/");
  const parsed = parseAddress(address);
  if (!parsed || rest.length > 0) return undefined;
  const width = widthOf(parsed.family);
  if (length === undefined) return { ...parsed, bits: width };
  if (!/^\d{1,3}$/.test(length)) return undefined;
  // A mapped network is written with the prefix length of IPv6.
  const bits = parsed.family === 4 && isIPv6(address) ? Number(length) - 96 : Number(length);
  return bits < 0 || bits > width ? undefined : { ...parsed, bits };
}

export function contains(network: Network, address: IpAddress): boolean {
  if (network.family !== address.family) return false;
  const rest = BigInt(widthOf(network.family) - network.bits);
  return network.value >> rest === address.value >> rest;
}

/** The lowest 32 bits. */
export function low32(value: bigint): bigint {
  return value & 0xffff_ffffn;
}

function widthOf(family: 4 | 6): number {
  return family === 4 ? 32 : 128;
}

function parseIPv4(text: string): bigint {
  return text.split(".").reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** The text is known to be well-formed. */
function parseIPv6(text: string): bigint {
  const groups = (part: string): bigint[] =>
    part === ""
      ? []
      : part.split(":").flatMap((group) => {
          if (!group.includes(".")) return [BigInt(`0x${group}`)];
          const ipv4 = parseIPv4(group);
          return [ipv4 >> 16n, ipv4 & 0xffffn];
        });
  const [left = "", right] = text.split("::");
  const head = groups(left);
  const tail = right === undefined ? [] : groups(right);
  const zeros = new Array<bigint>(8 - head.length - tail.length).fill(0n);
  return [...head, ...zeros, ...tail].reduce((value, group) => (value << 16n) | group, 0n);
}
