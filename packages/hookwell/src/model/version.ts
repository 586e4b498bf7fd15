/** Version of the package; a test holds it equal to package.json. A constant, because bundlers lose files. */
export const version = "0.1.0";
