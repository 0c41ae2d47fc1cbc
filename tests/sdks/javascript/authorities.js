/**
 * A case trusts Node's authorities and that of its emulator. The SDK has no option for authorities; a program with
 * one emulator would name its authority by `NODE_EXTRA_CA_CERTS`, which Node reads once for the whole process.
 */
"use strict";

const { readFileSync } = require("node:fs");
const tls = require("node:tls");

const { environments } = require("./bus");

const { createSecureContext } = tls;

tls.createSecureContext = (options) => {
  const secure = createSecureContext(options);
  const authority = environments.getStore()?.authority;
  if (authority) {
    secure.context.addCACert(authority);
  }
  return secure;
};

/** The settings of a case, with the content of the certificate file that they name. */
function withAuthority(environment) {
  return { ...environment, authority: readFileSync(environment.SERVICEBUS_CA_FILE, "utf8") };
}

module.exports = { withAuthority };
