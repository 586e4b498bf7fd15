import { library, type Mutation } from "../mutation.ts";

/** One exchange: bodies, signatures, addresses, answers. */
export const sendingFaults: readonly Mutation[] = [
  {
    name: "3xx is a success",
    file: `${library}/send/exchange.ts`,
    from: "if (status < 300) this.result.resolve(details);",
    to: "if (status < 400) this.result.resolve(details);",
    item: "field-faults E1",
  },
  {
    name: "a reset of a reused connection is a failed attempt",
    file: `${library}/send/exchange.ts`,
    from: "!this.#triedAgain &&",
    to: "this.#triedAgain &&",
    item: "field-faults E7",
  },
  {
    name: "a 2xx whose body never ends is a time-out",
    file: `${library}/send/exchange.ts`,
    from: "expire(): void {\n    if (this.#settled) return;\n    if (this.#status !== 0) this.#settle();",
    to: "expire(): void {\n    if (this.#settled) return;\n    if (this.#status < 0) this.#settle();",
    item: "field-faults E5",
  },
  {
    name: "6to4 addresses are not looked into",
    file: `${library}/send/special-networks.ts`,
    from: "if (contains(sixToFour, address)) return [ipv4(value >> 80n)];",
    to: "",
    item: "field-faults G1",
  },
  {
    name: "of the addresses of a name only the first is looked at",
    file: `${library}/send/connector.ts`,
    from: "for (const { address } of addresses) {",
    to: "for (const { address } of addresses.slice(0, 1)) {",
    item: "field-faults G2",
  },
  {
    name: "a secret may have unseen characters",
    file: `${library}/send/signatures.ts`,
    from: "if (unseen.test(secret))",
    to: 'if (secret.includes(" "))',
    item: "field-faults F5",
  },
  {
    name: "the timestamp is not signed",
    file: `${library}/send/signatures.ts`,
    from: ".update(head).update(body)",
    to: ".update(body)",
    item: "field-faults F4",
  },
  {
    name: "every attempt has the timestamp of the first",
    file: `${library}/send/http-sender.ts`,
    from: "headers: this.#wire.of(delivery, Math.floor(startedAt.getTime() / 1000)),",
    to: "headers: this.#wire.of(delivery, Math.floor(delivery.createdAt.getTime() / 1000)),",
    item: "field-faults F7",
  },
  {
    name: "an old secret signs for ever",
    file: `${library}/store/secret-rotation.ts`,
    from: ".filter(({ expiresAt }) => expiresAt === undefined || expiresAt.getTime() > now)",
    to: "",
    item: "field-faults F8",
  },
  {
    name: "any signature of the right length verifies",
    file: `${library}/send/verify.ts`,
    from: "return given.length === expected.length && timingSafeEqual(given, expected);",
    to: "return given.length === expected.length;",
    item: "events 36",
  },
  {
    name: "a header may have any name",
    file: `${library}/send/custom-headers.ts`,
    from: 'if (!token.test(name)) return "must have a name of letters, digits and !#$%&\'*+.^_`|~- only";',
    to: "",
    item: "field-faults E11",
  },
  {
    name: "NUL is not taken out of what receivers say",
    file: `${library}/store/storable.ts`,
    from: '.replaceAll("\\u0000", "\\ufffd")',
    to: "",
    item: "field-faults I1",
  },
];
