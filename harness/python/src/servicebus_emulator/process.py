"""The process of the emulator. It ends with its standard input, and so with this process, however that ends."""

import atexit
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from .control import Control, EmulatorError

__tracebackhide__ = True

PROGRAM = "servicebus-emulator.exe" if sys.platform == "win32" else "servicebus-emulator"
VARIABLE = "SERVICEBUS_EMULATOR_BIN"
START_SECONDS = 30
STOP_SECONDS = 10


class Emulator:
    """A running emulator, started with these options of its command line."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._last_words = tempfile.TemporaryFile()  # noqa: SIM115
        self._program = program()
        self._process = subprocess.Popen(
            [self._program, "--for-tests", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._last_words,
            start_new_session=True,  # Ctrl-C is for the tests, whose end is the emulator's.
        )
        if hasattr(os, "register_at_fork"):  # A child of a test must not keep it alive.
            os.register_at_fork(after_in_child=self._let_go)
        self.ready = self._wait_until_ready()
        self.control = Control(self.ready["http"], self.why_it_ended)

    def stop(self) -> None:
        """Ends the process."""
        with self._process:
            self._let_go()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            self._process.kill()
        self._last_words.close()

    def why_it_ended(self) -> str:
        """What became of it, in a sentence."""
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return "the emulator runs and does not answer: end the run, and start it again"
        cause = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit code {status}"
        words = self._said()[-1]
        return f"the emulator ended {cause} in the middle of the run: start the run again" + (words and f"; {words}")

    def _wait_until_ready(self) -> dict[str, Any]:
        process = self._process
        assert process.stdout
        limit = threading.Timer(START_SECONDS, process.kill)
        limit.start()
        line = process.stdout.readline()
        limit.cancel()
        if line.startswith(b'{"event":"ready"'):
            return dict(json.loads(line))
        process.kill()
        process.wait()
        words = self._said()[0] or f"{self._program} is no emulator"
        self.stop()
        raise EmulatorError(f"the emulator did not start: {words}; check `servicebus_options` and {VARIABLE}")

    def _said(self) -> list[str]:
        """The last lines of its standard error; one without text where there are none."""
        size = self._last_words.seek(0, os.SEEK_END)
        self._last_words.seek(max(0, size - 4096))
        return self._last_words.read().decode(errors="replace").strip().split("\n")

    def _let_go(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()


@cache
def shared() -> Emulator:
    """The emulator of this process, started when it is first needed."""
    emulator = Emulator()
    atexit.register(emulator.stop)
    return emulator


def program() -> str:
    """The program that `SERVICEBUS_EMULATOR_BIN` names, else that of the wheel, else the one on the path."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named) if named else installed() or shutil.which(PROGRAM)
    if found:
        return found
    if named:
        raise EmulatorError(f"{VARIABLE} names {named}, which is no program: name one, or unset it")
    raise EmulatorError(
        f"this installation has no emulator for {platform.system()} on {platform.machine()}, and there is none on the "
        f"path: build it with `cargo build --release -p servicebus-emulator` and name it in {VARIABLE}"
    )


def installed() -> str | None:
    """The program that was installed with this package."""
    with suppress(PackageNotFoundError):
        for file in files("pytest-servicebus-emulator") or []:
            path = Path(str(file.locate())).resolve()
            if path.name == PROGRAM and path.is_file():
                return str(path)
    return None
