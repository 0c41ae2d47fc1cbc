"""The emulator's control API, as far as the cases need it, and the namespace's address."""

import json
import os
import time
from urllib.parse import quote
from urllib.request import Request, urlopen

# Long enough for a busy machine, short enough to detect a hang.
TIMEOUT = 45

CONTROL = os.environ["SERVICEBUS_CONTROL_URL"]
URL = os.environ["SERVICEBUS_KOMBU_URL"]
# The longest that kombu waits in a receive before it looks at its other queues.
TRANSPORT = {"wait_time_seconds": 1}


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = Request(CONTROL + path, data, {"Content-Type": "application/json"})
    with urlopen(request, timeout=TIMEOUT + 15) as response:
        return json.loads(response.read() or "null")


def counts(entity):
    return ask(f"/counts?entity={quote(entity)}")


def happened(entity):
    """The number of events of each kind in the timeline of a queue."""
    return ask(f"/timeline?entity={quote(entity)}")["counters"]


def queues():
    return [queue["name"] for queue in ask("/queues")["queues"]]


def advance(seconds):
    ask("/clock/advance", {"seconds": seconds})


def settled():
    ask("/settled", {"within": TIMEOUT})


def expect(what, found, expected):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def eventually(what, holds):
    """Waits until a condition holds, which another process fulfils."""
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {TIMEOUT} s"
        time.sleep(0.05)
