"""A namespace: its connection strings, clock, faults and timeline."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, TypedDict
from unittest import SkipTest

from .assertions import Assertions
from .control import EmulatorError
from .faults import Faults
from .process import Emulator, shared
from .topology import Declared, encoded

__tracebackhide__ = True

WITHIN_SECONDS = 5.0
SHOWN_EVENTS = 200


class Event(TypedDict):
    """An event of the timeline, as in the control API."""

    at: str
    offset: float
    kind: str
    entity: str | None
    sequence_number: int | None
    message_id: str | None
    client: str | None
    delivery_count: int | None
    locked_until: str | None
    reason: str | None
    detail: str | None
    session: str | None
    line: str


class Timeline(list[Event]):
    """The events of a namespace, oldest first; `str` returns a line for each."""

    @property
    def kinds(self) -> list[str]:
        """The kind of each event: `["sent", "delivered", "completed"]`."""
        return [event["kind"] for event in self]

    def __str__(self) -> str:
        older = len(self) - SHOWN_EVENTS
        lines = [f"  … {older} older events"] if older > 0 else []
        return "\n".join([*lines, *(event["line"] for event in self[-SHOWN_EVENTS:])]) or "  nothing happened"


class ServiceBus(Assertions):
    """A namespace of an emulator, created by `namespace` or by the fixture `servicebus`."""

    def __init__(self, emulator: Emulator, declared: Declared) -> None:
        self.emulator = emulator
        self._control = emulator.control
        created = self._control.ask("POST", "namespaces", encoded(declared))
        self.name: str = created["name"]
        self._path = f"namespaces/{self.name}"
        self.connection_string: str = created["connection_string"]
        self.tls_connection_string: str = created["tls_connection_string"]
        """The connection string for TLS, as in production."""
        self.faults = Faults(self._control, self._path)
        self.passed: bool | None = None
        """Whether the test has passed; None before it has finished."""
        self._ended: tuple[bool, str | None] | None = None

    @property
    def ca_certificate(self) -> str:
        """The file that clients over TLS must trust: `connection_verify=servicebus.ca_certificate`."""
        if file := self.emulator.ready["ca_certificate"]:
            return str(file)
        raise EmulatorError("the emulator has no directory for its certificate authority: pass `--tls-directory DIR`")

    def now(self) -> datetime:
        """The time of the namespace's clock."""
        return parsed(self._ask("GET", "clock")["now"])

    def advance(self, seconds: float | timedelta) -> None:
        """Advances the clock, and returns when everything that is due by then has been processed."""
        self._ask("POST", "clock/advance", {"seconds": seconds})

    def freeze(self) -> None:
        """Stops the clock."""
        self._ask("POST", "clock/freeze")

    def resume(self) -> None:
        """Restarts a stopped clock."""
        self._ask("POST", "clock/resume")

    def step_by_itself(self) -> None:
        """Makes the clock step to the next deadline whenever the namespace is idle."""
        self._ask("POST", "clock/auto")

    @contextmanager
    def hold_clock(self) -> Iterator[None]:
        """Keeps a clock that steps by itself from stepping in the `with` block, for at most ten minutes."""
        hold = self._ask("POST", "clock/hold", {"seconds": 600})["id"]
        try:
            yield
        finally:
            self._ask("DELETE", f"clock/hold/{hold}")

    def is_idle(self) -> bool:
        """Whether the namespace is idle: no message is locked, or can be delivered to a receiver."""
        return bool(self._settled(0)["settled"])

    def wait_idle(self, within: float | timedelta = WITHIN_SECONDS) -> None:
        """Waits until the namespace is idle."""
        if "failure" in (result := self._settled(within)):
            raise AssertionError(result["failure"])

    def wait_for_receiver(self, entity: str, within: float | timedelta = WITHIN_SECONDS) -> None:
        """Waits until a client receives from a queue or subscription."""
        self.expect(entity, "attached", within=within)

    def counts(self, entity: str) -> dict[str, int]:
        """The numbers of messages: `active`, `dead_letter`, `locked`, `scheduled` and others."""
        return dict(self._ask("GET", "counts", entity=entity))

    def timeline(self, entity: str | None = None, message_id: str | None = None) -> Timeline:
        """The recorded events of the namespace, of an entity or of a message."""
        return Timeline(self._ask("GET", "timeline", entity=entity, message_id=message_id, lines="true")["events"])

    def sessions(self, entity: str) -> list[dict[str, Any]]:
        """The sessions of a queue or subscription, as in the control API: their holders, their states in base64."""
        return list(self._ask("GET", "sessions", entity=entity)["sessions"])

    def lose_session_lock(self, entity: str, session: str) -> None:
        """Ends the lock of a session as if it had expired."""
        self._ask("POST", "sessions/lose", {"entity": entity, "session": session})

    def explain(self, subscription: str, properties: Mapping[str, Any] | None = None, **system: Any) -> dict[str, Any]:
        """How each rule evaluates a message, without sending it; `system` are broker properties: `Label="order"`."""
        message = [{"UserProperties": dict(properties or {}), "BrokerProperties": system}]
        rules = self._ask("POST", "explain", message, subscription=subscription)["rules"]
        return {rule["rule"]: rule for rule in rules}

    def reset(self) -> None:
        """Removes all messages, sessions and recorded events."""
        self._ask("POST", "reset")

    def end(self) -> str | None:
        """Ends the namespace if it has not ended; returns the problem, which also fails the test, such as a fault that
        never fired. There is none if the test has failed before."""
        return self._end(self.passed is not False)

    def _end(self, passed: bool) -> str | None:
        """Ends the namespace if it has not ended; returns the problem if the test had passed by then."""
        if self._ended is None:
            self._ended = (passed, self._ask("POST", "end", {"passed": passed})["report"])
        ended_passed, report = self._ended
        return report if ended_passed else None

    def _report(self) -> str | None:
        """The timeline; if the namespace has ended, what its end has reported."""
        return self._ended[1] if self._ended else str(self.timeline())

    def _settled(self, within: float | timedelta) -> Any:
        return self._ask("POST", "settled", {"within": within, "refuse": False})

    def _ask(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        return self._control.ask(method, f"{self._path}/{path}", body, **query)


@contextmanager
def namespace(topology: Declared = None, emulator: Emulator | None = None) -> Iterator[ServiceBus]:
    """A namespace for the duration of a block; without a topology it has one queue, `queue.1`.

    The exception of a block that fails gets the timeline, as a note or before Python 3.11 in its text.
    """
    servicebus = ServiceBus(emulator or shared(), topology)
    try:
        yield servicebus
    except BaseException as error:
        with suppress(EmulatorError):  # The emulator has ended, as the error says.
            servicebus._end(False)
            note(error, servicebus._report())
        raise
    if problem := servicebus.end():
        raise AssertionError(problem)


def note(error: BaseException, report: str | None) -> None:
    """Adds a report to an error, but not to what skips a test or ends the process."""
    if not report or not isinstance(error, Exception) or isinstance(error, SkipTest):
        return
    if sys.version_info >= (3, 11):
        error.add_note(report)
    elif len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{report}",)


def parsed(time: str) -> datetime:
    """A time in RFC 3339; before Python 3.11 `fromisoformat` accepts three or six digits of the fraction only."""
    return datetime.fromisoformat(re.sub(r"\.(\d+)", lambda part: f".{part[1]:0<6.6}", time).replace("Z", "+00:00"))
