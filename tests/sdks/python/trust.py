"""Performs a TLS handshake in memory: a server with a certificate, and a client that trusts an authority.

    python trust.py <authority> <certificate> <key> <name>

Prints `trusted`, or why the certificate is not trusted.
"""

import ssl
import sys


def main():
    """Performs the handshake in memory."""
    authority, certificate, key, name = sys.argv[1:]
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate, key)
    client_context = ssl.create_default_context(cafile=authority)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for side in [client, server, client]:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLCertVerificationError as error:
            print(error.verify_message)
            return
    print("trusted")


main()
