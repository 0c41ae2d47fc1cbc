"""The process of the emulator. It ends when its standard input is closed, so it does not outlive this process."""

import atexit
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, files, version
from itertools import dropwhile, takewhile
from pathlib import Path
from queue import Empty, Queue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from typing import Any

from .control import Control, EmulatorError

__tracebackhide__ = True

PROGRAM = "servicebus-emulator.exe" if sys.platform == "win32" else "servicebus-emulator"
PACKAGE = "pytest-servicebus-emulator"
VARIABLE = "SERVICEBUS_EMULATOR_BIN"
START_SECONDS = 30
STOP_SECONDS = 10
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+ +(WARN|INFO|DEBUG|TRACE) ")


class Emulator:
    """A running emulator, started with these command-line options."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._program = program()
        command = [self._program, "--for-tests", *options]
        # In another session, because Ctrl-C is for the tests; the emulator ends when they end.
        # Without buffers, whose locks a thread that still reads would hold when this process exits.
        self._process = Popen(command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=self._stderr, start_new_session=True)
        if hasattr(os, "register_at_fork"):  # A child process of a test must not keep the emulator running.
            os.register_at_fork(after_in_child=self._close_stdin)
        self.ready = self._wait_until_ready()
        self.control = Control(self.ready["http"], self.why_it_ended)

    def stop(self) -> None:
        """Ends the process."""
        with self._process:
            self._close_stdin()
            with suppress(TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            self._process.kill()
        self._last_lines = self._error_lines()
        self._stderr.close()

    def why_it_ended(self) -> str:
        """Why the emulator does not respond."""
        try:
            status = self._process.wait(1)
        except TimeoutExpired:
            return "the emulator is running but does not respond: stop the test run, and start it again"
        cause = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"exited with code {status}"
        line = self._error_lines()[-1]
        return f"the emulator {cause} during the test run: start the run again" + (line and f"; {line}")

    def _wait_until_ready(self) -> dict[str, Any]:
        process = self._process
        try:
            line = self._first_line()
        except BaseException:  # Ctrl-C
            process.kill()
            raise
        ready: dict[str, Any] = json.loads(line) if line and line.startswith(b'{"event":"ready"') else {}
        own = own_version()
        if ready and (own is None or release(ready["version"]) == release(own)):
            return ready
        process.kill()
        process.wait()
        silent = f"{self._program} is not the emulator's program"
        if line is None:
            silent = f"it was not ready within {START_SECONDS} s"
        reason = first_error(self._error_lines()) or silent
        if ready:
            reason = f"{self._program} is version {ready['version']}, but this package is version {own}"
        if process.stdout and line is not None:  # Otherwise it is still being read.
            process.stdout.close()
        self._close_stdin()
        self._stderr.close()
        raise EmulatorError(f"the emulator did not start: {reason}; check `servicebus_options` and {VARIABLE}")

    def _first_line(self) -> bytes | None:
        """The first line of standard output, or nothing if it does not come in time.

        A thread reads it: another process that has inherited standard output may keep it open.
        """
        lines: Queue[bytes] = Queue()
        stdout = self._process.stdout
        Thread(target=lambda: lines.put(stdout.readline() if stdout else b""), daemon=True).start()
        with suppress(Empty):
            return lines.get(timeout=START_SECONDS)
        return None

    def _error_lines(self) -> list[str]:
        """The last lines of the emulator's standard error, or one empty line."""
        if self._stderr.closed:
            return self._last_lines
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - 4096))
        return self._stderr.read().decode(errors="replace").strip().split("\n")

    def _close_stdin(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()


def first_error(lines: list[str]) -> str:
    """The first line that is not of the log, with the indented lines that follow it, or an empty text."""
    errors = dropwhile(lambda line: not line or LOG_LINE.match(line), lines)
    first = next(errors, "")
    return " ".join([first, *(line.strip() for line in takewhile(lambda line: line[:1] in ("", " "), errors) if line)])


@cache
def shared() -> Emulator:
    """The emulator of this process, started when it is first needed."""
    emulator = Emulator()
    atexit.register(emulator.stop)
    return emulator


def program() -> str:
    """The program in `SERVICEBUS_EMULATOR_BIN`, else that of the wheel, else the one on `PATH`."""
    named = os.environ.get(VARIABLE)
    if found := shutil.which(named) if named else installed() or shutil.which(PROGRAM):
        return found
    if named:
        raise EmulatorError(f"{VARIABLE} is {named}, which is not an executable file: correct the path, or unset it")
    raise EmulatorError(
        f"this installation has no emulator for {platform.system()} on {platform.machine()}, and PATH has none: build "
        f"it with `cargo build --release -p servicebus-emulator` and set {VARIABLE} to the program"
    )


def own_version() -> str | None:
    """The version of this package, if it is installed."""
    with suppress(PackageNotFoundError):
        return version(PACKAGE)
    return None


def release(version: str) -> str:
    """The numbers of a version: Python writes 0.2.0-rc.1 as 0.2.0rc1."""
    return re.split(r"[^\d.]", version)[0].rstrip(".")


def installed() -> str | None:
    """The program that was installed with this package."""
    with suppress(PackageNotFoundError):
        paths = (Path(str(file.locate())) for file in files(PACKAGE) or [] if file.name == PROGRAM)
        return next((str(path.resolve()) for path in paths if path.is_file()), None)
    return None
