"""Resolves the name of the namespace to the emulator, as a line in the hosts file does, with the default ports.

Python runs this by itself when it starts. Tests may neither write the hosts file nor listen at 443, so the name is
resolved here, and with it the ports 443 and 5671; what connects is unchanged.
"""

import os
import socket

NAME = os.environ["SERVICEBUS_NAME"]
PORTS = {5671: os.environ["SERVICEBUS_AMQPS"], 443: os.environ["SERVICEBUS_HTTPS"]}

_resolve = socket.getaddrinfo


def resolve(host, port, *args, **kwargs):
    if host not in (NAME, NAME.encode()):
        return _resolve(host, port, *args, **kwargs)
    address, port = PORTS[int(port)].rsplit(":", 1)
    return _resolve(address, int(port), *args, **kwargs)


socket.getaddrinfo = resolve
