"""The pytest plugin: fixtures, and the timeline in the reports of failed tests and set-ups."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import TestCase

import pytest

from .control import EmulatorError
from .namespace import ServiceBus
from .process import Emulator
from .topology import Declared, topology

MARKER = "servicebus"
MARKED = ("queues", "topics", "settings", "topology")

_servicebus = pytest.StashKey[ServiceBus]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("servicebus_options", "options of the emulator, such as --tier premium", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}({', '.join(MARKED)}): the topology of the test's namespace")


@pytest.fixture(scope="session")
def servicebus_emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """The emulator of the session, or of the worker of pytest-xdist."""
    with without_traceback():
        emulator = Emulator(request.config.getini("servicebus_options"))
    yield emulator
    emulator.stop()


@pytest.fixture
def servicebus_topology(request: pytest.FixtureRequest) -> Declared:
    """The topology of tests without a marker, which may be overridden: `topology.json` beside the test, if any."""
    file = request.path.with_name("topology.json")
    return file if file.is_file() else None


@pytest.fixture
def servicebus(request: pytest.FixtureRequest, servicebus_emulator: Emulator) -> Iterator[ServiceBus]:
    """A namespace for this test, removed when it ends. A `unittest.TestCase` has it as `self.servicebus`."""
    marker = request.node.get_closest_marker(MARKER)
    declared = marked(marker) if marker else None
    if declared is None:
        declared = request.getfixturevalue("servicebus_topology")
    if isinstance(declared, str | Path):
        declared = request.path.parent / declared
    with without_traceback():
        servicebus = ServiceBus(servicebus_emulator, declared)
    request.node.stash[_servicebus] = servicebus
    if isinstance(request.instance, TestCase):
        request.instance.servicebus = servicebus  # type: ignore[attr-defined]
    yield servicebus
    with without_traceback():
        problem = servicebus._end(bool(servicebus.passed))  # None after KeyboardInterrupt.
        if servicebus.passed and problem:
            raise EmulatorError(problem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the timeline of the namespace to the report of a failed test or set-up."""
    report = yield
    servicebus = item.stash.get(_servicebus, None)
    if report.when in ("setup", "call") and servicebus is not None:
        if report.when == "call" or report.failed:
            servicebus.passed = report.passed
        if report.failed:
            with suppress(EmulatorError):  # The emulator has ended, as the failure says.
                if text := servicebus._report():
                    report.sections.append((f"timeline of {servicebus.name}", text))
    return report


@contextmanager
def without_traceback() -> Iterator[None]:
    """Fails with the message of an error, without a traceback into this package."""
    try:
        yield
    except (EmulatorError, OSError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def marked(marker: pytest.Mark) -> Declared:
    """The topology of a marker, if it has one."""
    if unknown := [*marker.args, *(name for name in marker.kwargs if name not in MARKED)]:
        expected = f"@pytest.mark.{MARKER} takes {', '.join(MARKED)} by their names"
        pytest.fail(f"{expected}, not {', '.join(map(repr, unknown))}", pytrace=False)
    for name, value in marker.kwargs.items():
        if isinstance(value, Iterator):
            pytest.fail(f"{name} is a list, not {value!r}, which the first test would use up", pytrace=False)
    if "topology" in marker.kwargs and len(marker.kwargs) > 1:
        pytest.fail(f"@pytest.mark.{MARKER} takes a topology, or queues, topics and settings, not both", pytrace=False)
    if "topology" in marker.kwargs:
        declared: Declared = marker.kwargs["topology"]
        return declared
    return topology(**marker.kwargs) if marker.kwargs else None
