"""The fixture `servicebus`: every test has a bus of its own, at ports of its own, which is gone when the test is."""

import json
import os
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

TOPOLOGY = Path(__file__).with_name("topology.json")
OPTIONS = ["--host", "127.0.0.1", "--amqp-port", "0", "--http-port", "0", "--exit-with-stdin"]


class ServiceBus:
    """A running bus: where it is, its time, and what it knows."""

    def __init__(self, ready):
        namespace = ready["namespaces"][0]
        self.connection_string = namespace["connection_string"]
        self._control = f"http://{ready['http']}/$emulator/v1/namespaces/{namespace['name']}"

    def advance(self, seconds):
        """Moves the time of the bus; all that falls due on the way has happened when this returns."""
        self._ask("clock/advance", {"seconds": seconds})

    def counts(self, entity):
        """How many messages there are: `active`, `dead_letter`, `locked`, `scheduled` and others."""
        return self._ask(f"counts?entity={urllib.parse.quote(entity)}")

    def timeline(self, entity, message_id):
        """What happened to a message, in order."""
        query = urllib.parse.urlencode({"entity": entity, "message_id": message_id})
        return [event["kind"] for event in self._ask(f"timeline?{query}")["events"]]

    def _ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._control}/{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@pytest.fixture
def servicebus():
    """Starts the emulator that `SERVICEBUS_EMULATOR_BIN` names, else the one on the path."""
    binary = os.environ.get("SERVICEBUS_EMULATOR_BIN", "servicebus-emulator")
    command = [binary, "--config", str(TOPOLOGY), *OPTIONS]
    # At the end its standard input is closed, and so it ends too.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as emulator:
        ready = emulator.stdout.readline()
        assert ready, "the emulator did not start; it says why on standard error"
        yield ServiceBus(json.loads(ready))
