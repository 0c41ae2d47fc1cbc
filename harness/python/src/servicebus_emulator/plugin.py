"""The pytest plugin: fixtures, and the timeline in the reports of tests that failed."""

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
    config.addinivalue_line("markers", f"{MARKER}({', '.join(MARKED)}): what the test's namespace holds")


@pytest.fixture(scope="session")
def servicebus_emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """The emulator of the session, or of the worker of pytest-xdist."""
    with sentences():
        emulator = Emulator(request.config.getini("servicebus_options"))
    yield emulator
    emulator.stop()


@pytest.fixture
def servicebus_topology(request: pytest.FixtureRequest) -> Declared:
    """What namespaces hold whose tests have no marker: to be overridden, else `topology.json` beside the test."""
    file = request.path.with_name("topology.json")
    return file if file.is_file() else None


@pytest.fixture
def servicebus(request: pytest.FixtureRequest, servicebus_emulator: Emulator) -> Iterator[ServiceBus]:
    """A namespace of the test's own, gone when the test is. A `unittest.TestCase` has it as `self.servicebus`."""
    marker = request.node.get_closest_marker(MARKER)
    declared = None if marker else request.getfixturevalue("servicebus_topology")
    with sentences():
        servicebus = ServiceBus(servicebus_emulator, marked(marker, request.path) if marker else declared)
    request.node.stash[_servicebus] = servicebus
    if isinstance(request.instance, TestCase):
        request.instance.servicebus = servicebus  # type: ignore[attr-defined]
    yield servicebus
    with sentences():
        if problem := servicebus.end():
            raise EmulatorError(problem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what happened in the namespace to the report of a test that failed."""
    report = yield
    servicebus = item.stash.get(_servicebus, None)
    if report.when == "call" and servicebus is not None:
        servicebus.passed = report.passed
        if report.failed:
            with suppress(EmulatorError):  # It has ended, which the failure tells.
                report.sections.append((f"timeline of {servicebus.name}", str(servicebus.timeline())))
    return report


@contextmanager
def sentences() -> Iterator[None]:
    """Fails with a sentence, and without a traceback into this package."""
    try:
        yield
    except (EmulatorError, OSError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def marked(marker: pytest.Mark, test: Path) -> Declared:
    """What a marker declares; the path of a file is relative to that of the test."""
    unknown = [*marker.args, *(name for name in marker.kwargs if name not in MARKED)]
    if unknown:
        given = ", ".join(map(repr, unknown))
        pytest.fail(f"@pytest.mark.{MARKER} takes {', '.join(MARKED)} by their names, not {given}", pytrace=False)
    if "topology" not in marker.kwargs:
        return topology(**marker.kwargs)
    declared: Declared = marker.kwargs["topology"]
    return test.parent / declared if isinstance(declared, str | Path) else declared
