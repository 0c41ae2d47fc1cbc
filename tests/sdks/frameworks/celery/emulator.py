"""The emulator's control API, as far as the cases need it, and the namespace's address."""

import json
import os
import time
from urllib.parse import quote
from urllib.request import Request, urlopen

# Long enough for a machine that is busy with something else, short enough to be told from a hang.
PATIENCE = 45

CONTROL = os.environ["SERVICEBUS_CONTROL_URL"]
URL = os.environ["SERVICEBUS_KOMBU_URL"]
# The longest that kombu waits in a receive before it looks at its other queues.
TRANSPORT = {"wait_time_seconds": 1}


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = Request(CONTROL + path, data, {"Content-Type": "application/json"})
    with urlopen(request, timeout=PATIENCE + 15) as response:
        return json.loads(response.read() or "null")


def counts(entity):
    return ask(f"/counts?entity={quote(entity)}")


def happened(entity):
    """How often what happened to a queue."""
    return ask(f"/timeline?entity={quote(entity)}")["counters"]


def queues():
    return [queue["name"] for queue in ask("/queues")["queues"]]


def advance(seconds):
    ask("/clock/advance", {"seconds": seconds})


def settled():
    ask("/settled", {"within": PATIENCE})


def expect(what, found, expected):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def eventually(what, holds):
    """Waits for what another process does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s"
        time.sleep(0.05)
