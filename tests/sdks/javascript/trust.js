/**
 * Performs a TLS handshake in memory: a server with a certificate, and a client that trusts an authority.
 *
 *     node trust.js <authority> <certificate> <key> <name>
 *
 * Prints `trusted`, or why the certificate is not trusted.
 */
"use strict";

const { readFileSync } = require("node:fs");
const tls = require("node:tls");

const [authority, certificate, key, servername] = process.argv.slice(2);
const server = tls.createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
server.on("tlsClientError", () => {});
server.listen(0, "127.0.0.1", () => {
  const port = server.address().port;
  const client = tls.connect({ host: "127.0.0.1", port, servername, ca: readFileSync(authority) });
  const end = (text) => {
    console.log(text);
    client.destroy();
    server.close();
  };
  client.on("secureConnect", () => end("trusted"));
  client.on("error", (error) => end(error.message));
});
