"""Measures the time of a namespace in a test, and of 1,000 tests that each send a message:

    python harness/python/tests/measure.py [WORKERS]

It also prints the time of the fixture before and after its test, and the processor time of the emulators.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent

from conftest import CLIENTS

WITHOUT = """
    import pytest

    @pytest.mark.parametrize("number", range(1000))
    def test_it(number): pass
"""
WITH = WITHOUT.replace("number):", "servicebus, number):")
SENDING = """
    import pytest
    from clients import send

    @pytest.mark.parametrize("number", range(1000))
    def test_it(servicebus, number):
        send(servicebus, "queue.1")
        assert servicebus.counts("queue.1")["active"] == 1
"""
CONFTEST = """
    from pathlib import Path
    import pytest

    seconds = dict.fromkeys(["setup", "call", "teardown"], 0.0)

    def pytest_runtest_logreport(report):
        seconds[report.when] += report.duration

    @pytest.fixture(scope="session")
    def servicebus_emulator(servicebus_emulator):
        yield servicebus_emulator
        stat = Path(f"/proc/{servicebus_emulator.ready['pid']}/stat").read_text()
        user, system = stat.rsplit(")")[1].split()[11:13]
        with open("ticks", "a") as file:
            file.write(f"{int(user) + int(system)}\\n")

    def pytest_sessionfinish(session):
        if not hasattr(session.config, "workerinput"):
            ticks = Path("ticks").read_text().split() if Path("ticks").exists() else []
            emulators = sum(map(int, ticks)) / 100
            took = ", ".join(f"{phase} {length:.2f} s" for phase, length in seconds.items())
            print(f"\\n{took}, processor of the emulators {emulators:.2f} s")
"""


def measure(tests: str, workers: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name, text in [("test_it", tests), ("conftest", CONFTEST), ("clients", CLIENTS)]:
            (Path(directory) / f"{name}.py").write_text(dedent(text))
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-n", workers]
        command = [sys.executable, "-m", "pytest", *options]
        output = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, text=True).stdout
        print(*(line for line in output.splitlines() if "setup" in line or "passed" in line), sep="\n", flush=True)


for tests, workers in [(WITHOUT, "0"), (WITH, "0"), (SENDING, sys.argv[1] if len(sys.argv) > 1 else "0")]:
    print(dedent(tests).strip().splitlines()[-1], flush=True)
    measure(tests, workers)
