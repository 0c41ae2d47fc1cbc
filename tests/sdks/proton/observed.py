"""Operations of a plain AMQP client that no SDK uses; by the numbers of `tests/conformance/OBSERVED.md`.

    python observed.py <case>

Reads `SERVICEBUS_CONNECTION_STRING`. Exits 0 when the case holds.
"""

import faulthandler
import os
import sys

from proton import ConnectionException, Message, symbol
from proton.reactor import AtLeastOnce, Copy, Selector
from proton.utils import BlockingConnection, LinkDetached

DEADLINE_SECONDS = 180


def connect(**options):
    """A connection to the namespace."""
    parts = dict(part.split("=", 1) for part in os.environ["SERVICEBUS_CONNECTION_STRING"].strip(";").split(";"))
    host = parts["Endpoint"].removeprefix("sb://").rstrip("/")
    return BlockingConnection(
        f"amqp://{host if ':' in host else host + ':5672'}",
        user=parts["SharedAccessKeyName"],
        password=parts["SharedAccessKey"],
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
        **options,
    )


def selector():
    """A filter that the service does not evaluate is refused (50)."""
    connection = connect()
    error = refused(lambda: connection.create_receiver("orders", name="mine", options=Selector("colour = 'red'")))
    expect("condition", error.condition, "amqp:not-allowed")
    description = "The link 'mine' contains invalid filter type. System only support Jms or Apache selector filter type."
    expect(f"whether {error} has the reason", description in str(error), True)


def copies():
    """A browser in a premium namespace gets copies, and the messages are kept (64)."""
    connection = connect()
    sender = connection.create_sender("orders")
    for number in range(3):
        sender.send(Message(body=number))
    browser = connection.create_receiver("orders", name="browser", options=Copy())
    expect("copies", [browser.receive().body for _ in range(3)], [0, 1, 2])
    receiver = connection.create_receiver("orders", options=AtLeastOnce())
    for number in range(3):
        expect("message", receiver.receive().body, number)
        receiver.accept()
    connection.close()


def copies_refused():
    """Browsing is rejected in other namespaces (64)."""
    connection = connect()
    error = refused(lambda: connection.create_receiver("orders", options=Copy()))
    expect("condition", error.condition, "amqp:not-implemented")


def jms():
    """Only premium namespaces accept clients of JMS 2.0 (72)."""
    error = refused(lambda: connect(properties={symbol("com.microsoft:is-client-provider"): True}))
    description = "Full JMS 2.0 parity over AMQP is a feature supported only by a Premium Messaging namespace."
    expect(f"whether {error} has the reason", description in str(error), True)


def refused(action):
    """Returns the error of an action."""
    try:
        action()
    except (LinkDetached, ConnectionException) as error:
        return error
    raise AssertionError("it is not refused")


def expect(what, actual, expected):
    """Fails with both values if they differ."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


if __name__ == "__main__":
    faulthandler.dump_traceback_later(DEADLINE_SECONDS, exit=True)
    {case.__name__: case for case in (selector, copies, copies_refused, jms)}[sys.argv[1]]()
