"""Explores a test: it runs again for each operation of its first run and each fault that can be injected there.

The emulator plans the runs and reports its findings. Its clock steps to the next deadline when the namespace is idle,
so a test does not wait for a lock to expire. Events have the order of real time; a token repeats the planned faults.
"""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from servicebus_emulator import Emulator

TOPOLOGY = Path(__file__).with_name("topology.json")


class Run:
    """A namespace for one run; faults are injected into operations of the parties, by their connection strings."""

    def __init__(self, emulator: Emulator, run: dict[str, Any]) -> None:
        self.connection_string: str = run["connection_string"]
        self.parties: dict[str, str] = run["parties"]
        self._control = emulator.control
        self._path = f"namespaces/{run['namespace']}"

    def counts(self, entity: str) -> dict[str, int]:
        """The numbers of messages: `active`, `dead_letter`, `locked`, `scheduled` and others."""
        counts: dict[str, int] = self._control.ask("GET", f"{self._path}/counts", entity=entity)
        return counts


def explore(emulator: Emulator, test: Callable[[Run], None], parties: list[str], **options: Any) -> None:
    """Runs `test` with each fault, and fails with the report if a run fails or the exploration proves nothing.

    Options are those of the control API.
    """
    ask = emulator.control.ask
    topology = TOPOLOGY.read_text(encoding="utf-8")
    token = os.environ.get("SERVICEBUS_EXPLORE")
    request = {"name": test.__name__, "topology": topology, "parties": parties, "token": token, **options}
    exploration = f"explorations/{ask('POST', 'explorations', request)['id']}"
    try:
        while run := ask("POST", f"{exploration}/runs"):
            result = outcome(test, Run(emulator, run))
            ask("POST", f"{exploration}/runs/{run['number']}/result", result)
        report = ask("GET", exploration)
    finally:
        ask("DELETE", exploration)
    if report["failed"] or not report["done"]:
        pytest.fail(report["text"], pytrace=False)
    print(report["text"])


def outcome(test: Callable[[Run], None], run: Run) -> dict[str, Any]:
    """Whether the test passes in this run; if not, the error and its location."""
    try:
        test(run)
    except Exception as failure:
        frames = traceback.extract_tb(failure.__traceback__)
        last = [frame for frame in frames if "site-packages" not in frame.filename][-1]
        message = f"{type(failure).__name__}: {failure}"
        return {"passed": False, "message": message, "location": f"{last.filename}:{last.lineno}"}
    return {"passed": True}
