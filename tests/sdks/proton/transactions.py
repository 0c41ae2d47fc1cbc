"""Works in transactions through Proton, while another connection observes.

    python transactions.py <case>

Fails with what was seen and what was expected. Reads `SERVICEBUS_CONNECTION_STRING` and `SERVICEBUS_CONTROL_URL`.
"""

import faulthandler
import json
import os
import sys
import urllib.request

from proton import Message
from proton.handlers import TransactionalClientHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container
from proton.utils import BlockingConnection

DEADLINE_SECONDS = 180
QUEUE = "orders"
MARKER = "marker"

# The messages in the queue before, those sent, whether the first message is accepted in the transaction, how it ends,
# and the messages that others receive afterwards.
CASES = {
    "commit": {"before": [], "send": ["a", "b"], "discharge": "commit", "after": ["a", "b"]},
    "abort": {"before": [], "send": ["a", "b"], "discharge": "abort", "after": []},
    "accept": {"before": ["a"], "send": ["b"], "discharge": "commit", "after": ["b"]},
    "accept_and_abort": {"before": ["a"], "send": ["b"], "discharge": "abort", "after": []},
    "lock_lost": {"before": ["a"], "send": ["b"], "discharge": "late commit", "after": ["a"]},
}


def login():
    """The address, and the options of a connection."""
    text = os.environ["SERVICEBUS_CONNECTION_STRING"]
    parts = dict(part.split("=", 1) for part in text.strip(";").split(";"))
    host = parts["Endpoint"].removeprefix("sb://").rstrip("/")
    options = {
        "user": parts["SharedAccessKeyName"],
        "password": parts["SharedAccessKey"],
        "allowed_mechs": "PLAIN",
        "allow_insecure_mechs": True,
        "reconnect": False,
    }
    return f"amqp://{host if ':' in host else host + ':5672'}", options


def advance(seconds):
    """Advances the clock of the namespace."""
    url = os.environ["SERVICEBUS_CONTROL_URL"] + "/clock/advance"
    body = json.dumps({"seconds": seconds}).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, body, headers)).close()


class Observer:
    """Another connection, outside of the transaction."""

    def __init__(self):
        address, options = login()
        self.connection = BlockingConnection(address, timeout=DEADLINE_SECONDS / 2, **options)
        self.sender = self.connection.create_sender(QUEUE)
        self.receiver = self.connection.create_receiver(QUEUE, credit=0, options=AtMostOnce())

    def send(self, body):
        """Sends a message that is active at once."""
        self.sender.send(Message(body=body))

    def take(self):
        """Receives all available messages: those that arrive before a message that is sent last."""
        self.send(MARKER)
        bodies = []
        while MARKER not in bodies:
            bodies.append(self.receiver.receive().body)
        return bodies[:-1]


class Work(TransactionalClientHandler):
    """One transaction from its declaration to its discharge."""

    def __init__(self, case, observer):
        super().__init__(prefetch=0, auto_accept=False)
        self.case = case
        self.observer = observer
        self.transaction = None
        self.unanswered = 0
        self.acceptance = []
        self.ended = None
        self.during = None
        self.after = None

    def on_start(self, event):
        address, options = login()
        self.connection = event.container.connect(address, **options)
        self.sender = event.container.create_sender(self.connection, QUEUE)
        self.receiver = event.container.create_receiver(
            self.connection, QUEUE, options=AtLeastOnce())
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        if self.case["before"]:
            self.receiver.flow(1)
        else:
            self.send()

    def on_message(self, event):
        self.accept(event.delivery, self.transaction)
        self.send()

    def send(self):
        for body in self.case["send"]:
            self.unanswered += 1
            self.transaction.send(self.sender, Message(body=body))

    def on_delivery(self, event):
        if event.link.is_receiver and event.delivery.updated:
            self.acceptance.append("settled" if event.delivery.settled else "unsettled")

    def on_settled(self, event):
        if self.ended or event.link.is_receiver:
            return
        self.unanswered -= 1
        if self.unanswered == 0:
            self.discharge()

    def discharge(self):
        self.during = self.observer.take()
        if self.case["discharge"] == "late commit":
            advance(61)
        if self.case["discharge"] == "abort":
            self.transaction.abort()
        else:
            self.transaction.commit()

    def on_transaction_committed(self, event):
        self.end("commit")

    def on_transaction_aborted(self, event):
        self.end("abort")

    def on_transaction_commit_failed(self, event):
        self.end("late commit")

    def on_transaction_declare_failed(self, event):
        self.end("no declaration")

    def end(self, how):
        self.ended = how
        self.after = self.observer.take()
        self.connection.close()

    def on_transport_error(self, event):
        self.fail(event.transport.condition)

    def on_connection_error(self, event):
        self.fail(event.connection.remote_condition)

    def on_link_error(self, event):
        self.fail(event.link.remote_condition)

    def on_rejected(self, event):
        self.fail(event.delivery.remote.condition)

    def fail(self, condition):
        self.ended = f"failed: {condition}"
        self.connection.close()


def main():
    """Runs the case and compares."""
    case = CASES[sys.argv[1]]
    faulthandler.dump_traceback_later(DEADLINE_SECONDS, exit=True)
    observer = Observer()
    for body in case["before"]:
        observer.send(body)
    work = Work(case, observer)
    Container(work).run()
    observer.connection.close()
    seen = {
        "discharge": work.ended,
        "during": work.during,
        "after": work.after,
        "acceptance": work.acceptance,
    }
    # An acceptance gets its outcome at once, and is settled only with the commit (spec/observed.md 41).
    answers = {"commit": ["unsettled", "settled"]}.get(case["discharge"], ["unsettled"])
    expected = {
        "discharge": case["discharge"],
        "during": [],
        "after": case["after"],
        "acceptance": answers if case["before"] else [],
    }
    if seen != expected:
        print(f"seen {seen}, expected {expected}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
