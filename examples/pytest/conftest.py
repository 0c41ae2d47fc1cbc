"""The fixture `servicebus`: one emulator for the run, and in it a namespace for each test that no other test sees.

To be copied, together with `topology.json`, which declares what each namespace holds. The emulator ends with its standard
input, and so with pytest, however that ends.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

TOPOLOGY = Path(__file__).with_name("topology.json")
OPTIONS = ["--host", "127.0.0.1", "--amqp-port", "0", "--http-port", "0", "--exit-with-stdin"]
PATIENCE_SECONDS = 5
_numbers = count(1)


class ServiceBus:
    """A namespace: what an SDK needs to reach it, its time, its faults, and what happened in it."""

    def __init__(self, control: str, connection_string: str) -> None:
        self.connection_string = connection_string
        self._control = control

    def advance(self, seconds: float) -> None:
        """Moves the time of this namespace; all that falls due on the way has happened when this returns."""
        ask("POST", f"{self._control}/clock/advance", {"seconds": seconds})

    def fault(self, operation: str, effect: str | dict[str, Any], **which: Any) -> None:
        """Lets an operation go wrong: the first that is like `which`, as the emulator's README lists it."""
        ask("POST", f"{self._control}/faults", {"operation": operation, "effect": effect, **which})

    def counts(self, entity: str) -> dict[str, int]:
        """How many messages there are: `active`, `dead_letter`, `locked`, `scheduled` and others."""
        counts: dict[str, int] = ask("GET", f"{self._control}/counts?{urlencode({'entity': entity})}")
        return counts

    def timeline(self, entity: str, message_id: str) -> list[dict[str, Any]]:
        """What happened to a message, oldest first."""
        query = urlencode({"entity": entity, "message_id": message_id})
        events: list[dict[str, Any]] = ask("GET", f"{self._control}/timeline?{query}")["events"]
        return events

    def assert_dead_lettered(self, queue: str, message_id: str, reason: str) -> None:
        """Waits until a message was dead-lettered for a reason; if it never is, tells what happened to it instead."""
        __tracebackhide__ = True
        deadline = time.monotonic() + PATIENCE_SECONDS
        wanted = ("dead-lettered", reason)
        while wanted not in ((event["kind"], event["reason"]) for event in self.timeline(queue, message_id)):
            if time.monotonic() > deadline:
                story = "\n".join(map(told, self.timeline(queue, message_id)))
                pytest.fail(f"{queue}: {message_id} is not dead-lettered for {reason}\n{story}")
            time.sleep(0.05)


def told(event: dict[str, Any]) -> str:
    """An event as a line: when, what, and why."""
    why = event["reason"] or event["detail"] or ""
    return f"  {event['offset']:+10.3f} s  {event['kind']:15}  {why}".rstrip()


def ask(method: str, url: str, body: Any = None) -> Any:
    """Asks the control API; what is refused fails with the reason."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, {"Content-Type": "application/json"}, method=method), timeout=60) as answer:
            return json.loads(answer.read() or "null")
    except HTTPError as refusal:
        raise RuntimeError(f"{method} {url}: {refusal.read().decode()}") from None


@pytest.fixture(scope="session")
def emulator() -> Iterator[str]:
    """Runs the emulator that `SERVICEBUS_EMULATOR_BIN` names, else that on the path; where its namespaces are made."""
    binary = shutil.which(os.environ.get("SERVICEBUS_EMULATOR_BIN", "servicebus-emulator"))
    if binary is None:
        pytest.exit("there is no servicebus-emulator on the path, and SERVICEBUS_EMULATOR_BIN names none", 1)
    with subprocess.Popen([binary, *OPTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        ready = process.stdout.readline()
        assert ready, "the emulator did not start; it says why on standard error"
        yield f"http://{json.loads(ready)['http']}/$emulator/v1/namespaces"


@pytest.fixture
def servicebus(emulator: str) -> Iterator[ServiceBus]:
    """A namespace with the entities of `topology.json`, gone when the test is."""
    control = f"{emulator}/test-{next(_numbers)}"
    namespace = ask("PUT", control, TOPOLOGY.read_bytes())
    yield ServiceBus(control, namespace["connection_string"])
    ask("DELETE", control)
