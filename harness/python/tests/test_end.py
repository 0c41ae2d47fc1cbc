"""The emulator ends with the run, however that ends."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from pytest import Pytester

SECONDS = 30
WAITING = """
    import os, time
    from pathlib import Path

    def test_it_waits(servicebus, servicebus_emulator):
        {before}
        Path("emulator").write_text(servicebus_emulator.ready["http"] + "\\n")
        while True:
            time.sleep(1)
"""
FORKED = "if os.fork() == 0: time.sleep(600)"


@pytest.mark.parametrize("before", ["pass", FORKED])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_emulator(project: Pytester, before: str, end: signal.Signals) -> None:
    project.makepyfile(WAITING.format(before=before))
    run = subprocess.Popen([sys.executable, "-m", "pytest"], cwd=project.path, start_new_session=True)
    try:
        held = hold(address(project.path / "emulator"))
        run.send_signal(end)
        held.read()  # It ends with the emulator, or this fails after a while.
        run.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


def test_what_is_interrupted_is_no_failure(project: Pytester) -> None:
    before = 'servicebus.faults.on("complete").lose_lock()'
    project.makepyfile(WAITING.format(before=before))
    command = [sys.executable, "-m", "pytest"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    run = subprocess.Popen(command, cwd=project.path, start_new_session=True, **output)
    address(project.path / "emulator")
    os.killpg(run.pid, signal.SIGINT)  # As a terminal does for Ctrl-C.
    said = run.communicate(timeout=SECONDS)[0]
    assert "KeyboardInterrupt" in said
    assert "the emulator ended" not in said
    assert "never fired" not in said


def address(file: Path) -> str:
    deadline = time.monotonic() + SECONDS
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline, "the test does not start"
        time.sleep(0.05)
    return file.read_text().strip()


def hold(address: str) -> HTTPResponse:
    """A connection that stays for as long as the emulator runs."""
    connection = HTTPConnection(address, timeout=SECONDS)
    connection.request("GET", "/$emulator/v1/hold")
    return connection.getresponse()
