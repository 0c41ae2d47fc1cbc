"""Sends messages through Proton, receives them, and reports the encoded messages.

    python run.py <messages> <report>

`messages` is a JSON list of `{"name", "bytes"}` with encoded messages in hexadecimal. Each is sent twice: as the
bytes that it is, and as a `proton.Message` that was decoded from them. The report is a list of `{"name", "way",
"sent", "received", "shown"}`: the bytes that went out and those that came in, and, for a `proton.Message`, in which
of its parts the received one differs from the one sent. A message that `proton.Message` cannot decode has the way
`unspeakable` and the reason in `shown`.

Reads `SERVICEBUS_CONNECTION_STRING`.
"""

import faulthandler
import json
import os
import sys

from proton import Array, Delivery, Described, Message
from proton.handlers import IncomingMessageHandler, MessagingHandler
from proton.reactor import AtLeastOnce, Container

DEADLINE_SECONDS = 180
QUEUE = "matrix"
PARTS = ("body", "properties", "priority", "id", "user_id", "address", "subject", "reply_to",
         "correlation_id", "content_type", "content_encoding", "creation_time", "group_id",
         "group_sequence", "reply_to_group_id", "inferred")


class Exchange(MessagingHandler):
    """Sends all messages, one after the other, then receives as many."""

    def __init__(self, connection_string, payloads):
        super().__init__(prefetch=len(payloads), auto_accept=False)
        # Received messages are kept as bytes; Proton's message handler would decode and discard them.
        self.handlers = [h for h in self.handlers if not isinstance(h, IncomingMessageHandler)]
        self.parts = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
        self.payloads = payloads
        self.sent = 0
        self.received = []
        self.failure = None

    def on_start(self, event):
        host = self.parts["Endpoint"].removeprefix("sb://").rstrip("/")
        connection = event.container.connect(
            f"amqp://{host if ':' in host else host + ':5672'}",
            user=self.parts["SharedAccessKeyName"],
            password=self.parts["SharedAccessKey"],
            allowed_mechs="PLAIN",
            allow_insecure_mechs=True,
            reconnect=False,
        )
        self.sender = event.container.create_sender(connection, QUEUE)
        self.connection = connection

    def on_sendable(self, event):
        if self.sent == 0:
            self.send_next()

    def send_next(self):
        delivery = self.sender.delivery(str(self.sent))
        self.sender.stream(self.payloads[self.sent])
        self.sender.advance()
        self.sent += 1

    def on_accepted(self, event):
        event.delivery.settle()
        if self.sent < len(self.payloads):
            self.send_next()
        else:
            event.container.create_receiver(self.connection, QUEUE, options=AtLeastOnce())

    def on_rejected(self, event):
        self.fail(f"payload {self.sent - 1} was rejected: {event.delivery.remote.condition}")

    def on_delivery(self, event):
        delivery = event.delivery
        link = event.link
        if link.is_sender or not delivery.readable or delivery.partial:
            return
        self.received.append(link.recv(delivery.pending))
        link.advance()
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        if len(self.received) == len(self.payloads):
            self.connection.close()

    def on_transport_error(self, event):
        self.fail(f"the transport failed: {event.transport.condition}")

    def on_connection_error(self, event):
        self.fail(f"the connection failed: {event.connection.remote_condition}")

    def on_link_error(self, event):
        self.fail(f"a link failed: {event.link.remote_condition}")

    def fail(self, failure):
        self.failure = self.failure or failure
        self.connection.close()


def decoded(payload):
    """The message as Proton decodes it."""
    message = Message()
    message.decode(payload)
    return message


def shown(value):
    """A value with the types of all its parts, as text that can be compared."""
    if isinstance(value, memoryview):
        return f"binary {value.tobytes()!r}"
    if isinstance(value, dict):
        return str([(shown(key), shown(inner)) for key, inner in value.items()])
    if isinstance(value, Described):
        return f"{shown(value.descriptor)}: {shown(value.value)}"
    if isinstance(value, Array):
        return f"array of {value.type}: {[shown(inner) for inner in value.elements]}"
    if isinstance(value, list):
        return str([shown(inner) for inner in value])
    return f"{type(value).__name__} {value!r}"


def differing(sent, received):
    """Parts that differ from the sent message. The broker generates an id for a message without one."""
    before, after = decoded(sent), decoded(received)
    parts = [
        part for part in PARTS
        if shown(getattr(before, part)) != shown(getattr(after, part))
        and (part, before.id) != ("id", None)
    ]
    for annotations in ("annotations", "instructions"):
        theirs = getattr(after, annotations) or {}
        for key, value in (getattr(before, annotations) or {}).items():
            if value is not None and shown(theirs.get(key)) != shown(value):
                parts.append(f"{annotations}: {key}")
    return parts


def main():
    """Runs the exchange and writes the report."""
    _, messages, report = sys.argv
    faulthandler.dump_traceback_later(DEADLINE_SECONDS, exit=True)
    with open(messages, encoding="utf-8") as file:
        messages = json.load(file)
    rows = []
    unspeakable = []
    for sent in messages:
        payload = bytes.fromhex(sent["bytes"])
        rows.append((sent["name"], "bytes", payload))
        try:
            rows.append((sent["name"], "message", decoded(payload).encode()))
        except Exception as error:  # every exception means that Proton cannot decode the message
            unspeakable.append({"name": sent["name"], "way": "unspeakable", "sent": "",
                                "received": "", "shown": [repr(error)]})
    exchange = Exchange(os.environ["SERVICEBUS_CONNECTION_STRING"], [row[2] for row in rows])
    Container(exchange).run()
    if exchange.failure:
        print(exchange.failure)
        return 1
    observed = [
        {"name": name, "way": way, "sent": sent.hex(), "received": received.hex(),
         "shown": differing(sent, received) if way == "message" else []}
        for (name, way, sent), received in zip(rows, exchange.received)
    ]
    with open(report, "w", encoding="utf-8") as file:
        json.dump(observed + unspeakable, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
