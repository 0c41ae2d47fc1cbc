"""The emulator ends with the test run, however the run ends."""

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
def test_the_emulator_ends_when_the_run_is_ended_by_a_signal(
    project: Pytester, before: str, end: signal.Signals
) -> None:
    project.makepyfile(WAITING.format(before=before))
    run = subprocess.Popen([sys.executable, "-m", "pytest"], cwd=project.path, start_new_session=True)
    try:
        response = hold(address(project.path / "emulator"))
        run.send_signal(end)
        response.read()  # It ends when the emulator ends, or fails with a timeout.
        run.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


def test_an_interrupted_run_reports_no_failure(project: Pytester) -> None:
    before = 'servicebus.faults.on("complete").lose_lock()'
    project.makepyfile(WAITING.format(before=before))
    command = [sys.executable, "-m", "pytest"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    run = subprocess.Popen(command, cwd=project.path, start_new_session=True, **streams)
    address(project.path / "emulator")
    os.killpg(run.pid, signal.SIGINT)  # As a terminal sends it for Ctrl-C.
    output = run.communicate(timeout=SECONDS)[0]
    assert "KeyboardInterrupt" in output
    assert "during the test run" not in output
    assert "never fired" not in output


def test_a_start_that_is_interrupted_ends_at_once(project: Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    program = project.path / "program"
    program.write_text("#!/bin/sh\necho $$ >emulator\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("SERVICEBUS_EMULATOR_BIN", str(program))
    project.makepyfile("def test_it(servicebus): pass")
    run = subprocess.Popen([sys.executable, "-m", "pytest"], cwd=project.path, start_new_session=True)
    try:
        started = int(address(project.path / "emulator"))
        os.killpg(run.pid, signal.SIGINT)  # As a terminal sends it for Ctrl-C.
        run.wait(SECONDS / 2)
        with pytest.raises(ProcessLookupError):
            for _ in range(SECONDS):  # The process that adopts it may take a moment to remove it.
                os.kill(started, 0)
                time.sleep(0.1)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


def address(file: Path) -> str:
    deadline = time.monotonic() + SECONDS
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline, "the test has not started"
        time.sleep(0.05)
    return file.read_text().strip()


def hold(address: str) -> HTTPResponse:
    """Opens a response that ends when the emulator ends."""
    connection = HTTPConnection(address, timeout=SECONDS)
    connection.request("GET", "/$emulator/v1/hold")
    return connection.getresponse()
