"""Explores a test: it runs again for each operation of its first run and each thing that can go wrong there.

To be copied beside `conftest.py`. The emulator plans the runs and tells what was found. Its time steps by itself when nothing
moves, so that a lock that runs out costs no minute. Events come in the order of real time: a token repeats what was planned.
"""

import os
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from conftest import TOPOLOGY, ServiceBus, ask


class Run(ServiceBus):
    """A namespace for one run; what the parties do with their connection strings can go wrong."""

    def __init__(self, control: str, run: dict[str, Any]) -> None:
        super().__init__(control, run["connection_string"])
        self.parties: dict[str, str] = run["parties"]


def explore(emulator: str, test: Callable[[Run], None], parties: list[str], **options: Any) -> None:
    """Runs `test` with each fault, and fails with the report when it fails in any; options are those of the control API."""
    explorations = f"{emulator.removesuffix('/namespaces')}/explorations"
    topology = TOPOLOGY.read_text(encoding="utf-8")
    token = os.environ.get("SERVICEBUS_EXPLORE")
    asked = {"name": test.__name__, "topology": topology, "parties": parties, "token": token, **options}
    exploration = f"{explorations}/{ask('POST', explorations, asked)['id']}"
    try:
        while run := ask("POST", f"{exploration}/runs"):
            result = outcome(test, Run(f"{emulator}/{run['namespace']}", run))
            ask("POST", f"{exploration}/runs/{run['number']}/result", result)
        report = ask("GET", exploration)
    finally:
        ask("DELETE", exploration)
    if "stopped" in report["report"] or report["report"]["findings"]:
        pytest.fail(report["text"], pytrace=False)


def outcome(test: Callable[[Run], None], run: Run) -> dict[str, Any]:
    """Whether the test passes with this run's bus; if not, what failed, and where."""
    try:
        test(run)
    except Exception as failure:
        last = traceback.extract_tb(failure.__traceback__)[-1]
        message = f"{type(failure).__name__}: {failure}"
        return {"passed": False, "message": message, "location": f"{last.filename}:{last.lineno}"}
    return {"passed": True}
