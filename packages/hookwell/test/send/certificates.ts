import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { isIP } from "node:net";
import forge from "node-forge";

/** Key and certificate in PEM, as node:tls takes them. */
export interface Identity {
  readonly key: string;
  readonly cert: string;
}

export interface CertificateOptions {
  /** DNS names and addresses that it is for. */
  readonly names: readonly string[];
  /** Absent = it signs itself. */
  readonly issuer?: Identity;
  /** In days from now. Default: yesterday to tomorrow. */
  readonly days?: readonly [from: number, to: number];
  readonly authority?: boolean;
}

// One key pair serves every certificate of a test file: making one costs more than all the rest.
let keyPair: { readonly key: string; readonly publicKey: string } | undefined;

function sharedKey(): { readonly key: string; readonly publicKey: string } {
  if (!keyPair) {
    const key = generateKeyPairSync("rsa", { modulusLength: 2048 })
      .privateKey.export({ type: "pkcs8", format: "pem" })
      .toString();
    keyPair = { key, publicKey: createPublicKey(key).export({ type: "spki", format: "pem" }).toString() };
  }
  return keyPair;
}

let serial = 1;

/** Makes a certificate. */
export function certificate({
  names,
  issuer,
  days = [-1, 1],
  authority = false,
}: CertificateOptions): Identity {
  const { key, publicKey } = sharedKey();
  const cert = forge.pki.createCertificate();
  cert.publicKey = forge.pki.publicKeyFromPem(publicKey);
  cert.serialNumber = String(serial++).padStart(4, "0");
  const [from, to] = days.map((day) => new Date(Date.now() + day * 86_400_000));
  cert.validity.notBefore = from!;
  cert.validity.notAfter = to!;
  cert.setSubject([{ name: "commonName", value: names[0] ?? "test" }]);
  cert.setIssuer(
    issuer ? forge.pki.certificateFromPem(issuer.cert).subject.attributes : cert.subject.attributes,
  );
  cert.setExtensions([
    { name: "basicConstraints", cA: authority, critical: true },
    {
      name: "subjectAltName",
      altNames: names.map((name) => (isIP(name) ? { type: 7, ip: name } : { type: 2, value: name })),
    },
  ]);
  cert.sign(forge.pki.privateKeyFromPem(issuer?.key ?? key), forge.md.sha256.create());
  return { key, cert: forge.pki.certificateToPem(cert) };
}

/** A certificate authority of the test's own. */
export function certificateAuthority(): Identity {
  return certificate({ names: ["Hookwell test authority"], authority: true });
}
