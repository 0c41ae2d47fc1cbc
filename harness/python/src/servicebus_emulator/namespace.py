"""A namespace: what an SDK needs to reach it, its time, its faults, and what happened in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypedDict

from .assertions import Assertions
from .faults import Faults
from .process import Emulator, shared
from .topology import Declared, encoded

__tracebackhide__ = True

WITHIN_SECONDS = 5.0
SHOWN_EVENTS = 200


class Event(TypedDict):
    """Something that happened, as the control API tells it."""

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
    """What happened, oldest first; `str` has a line for each event."""

    @property
    def kinds(self) -> list[str]:
        """The kind of each event: `["sent", "delivered", "completed"]`."""
        return [event["kind"] for event in self]

    def __str__(self) -> str:
        older = len(self) - SHOWN_EVENTS
        lines = [f"  … {older} older events"] if older > 0 else []
        return "\n".join([*lines, *(event["line"] for event in self[-SHOWN_EVENTS:])]) or "  nothing happened"


class ServiceBus(Assertions):
    """A namespace of an emulator, made by `namespace` or by the fixture `servicebus`."""

    def __init__(self, emulator: Emulator, declared: Declared) -> None:
        self.emulator = emulator
        self._control = emulator.control
        made = self._control.ask("POST", "namespaces", encoded(declared))
        self.name: str = made["name"]
        self._path = f"namespaces/{self.name}"
        self.connection_string: str = made["connection_string"]
        self.tls_connection_string: str = made["tls_connection_string"]
        """The connection string for TLS, as in production."""
        self.ca_certificate: str = emulator.ready["ca_certificate"]
        """The file that clients over TLS must trust: `connection_verify=servicebus.ca_certificate`."""
        self.faults = Faults(self._control, self._path)
        self.passed = False
        """Whether the test has passed."""

    def now(self) -> datetime:
        """What the clock of the namespace shows."""
        return datetime.fromisoformat(self._ask("GET", "clock")["now"].replace("Z", "+00:00"))

    def advance(self, seconds: float | timedelta) -> None:
        """Moves the clock; all that falls due on the way has happened when this returns."""
        self._ask("POST", "clock/advance", {"seconds": seconds})

    def freeze(self) -> None:
        """Stops the clock."""
        self._ask("POST", "clock/freeze")

    def resume(self) -> None:
        """Lets a stopped clock run on."""
        self._ask("POST", "clock/resume")

    def step_by_itself(self) -> None:
        """From now on the clock steps to the next deadline whenever the namespace is idle."""
        self._ask("POST", "clock/auto")

    def is_idle(self) -> bool:
        """Whether nothing is left to deliver to a receiver, and no message is locked."""
        return bool(self._settled(0)["settled"])

    def wait_idle(self, within: float | timedelta = WITHIN_SECONDS) -> None:
        """Waits until the namespace is idle."""
        if "failure" in (told := self._settled(within)):
            raise AssertionError(told["failure"])

    def wait_for_receiver(self, entity: str, within: float | timedelta = WITHIN_SECONDS) -> None:
        """Waits until a client receives from a queue or subscription."""
        self.expect(entity, "attached", within=within)

    def counts(self, entity: str) -> dict[str, int]:
        """How many messages there are: `active`, `dead_letter`, `locked`, `scheduled` and others."""
        return dict(self._ask("GET", "counts", entity=entity))

    def timeline(self, entity: str | None = None, message_id: str | None = None) -> Timeline:
        """What happened in the namespace, to an entity or to a message, as far as the record goes back."""
        asked = self._ask("GET", "timeline", entity=entity, message_id=message_id, lines="true")
        return Timeline(asked["events"])

    def sessions(self, entity: str) -> list[dict[str, Any]]:
        """The sessions of a queue or subscription, as the control API tells them: holders, states in base64."""
        return list(self._ask("GET", "sessions", entity=entity)["sessions"])

    def lose_session_lock(self, entity: str, session: str) -> None:
        """Ends the lock of a session as if its time had run out."""
        self._ask("POST", "sessions/lose", {"entity": entity, "session": session})

    def explain(self, subscription: str, properties: Mapping[str, Any] | None = None, **system: Any) -> dict[str, Any]:
        """What each rule says of a message that is not sent; `system` are broker properties, as in `Label="order"`."""
        message = [{"UserProperties": dict(properties or {}), "BrokerProperties": system}]
        rules = self._ask("POST", "explain", message, subscription=subscription)["rules"]
        return {rule["rule"]: rule for rule in rules}

    def reset(self) -> None:
        """Removes all messages, sessions and the record."""
        self._ask("POST", "reset")

    def end(self) -> str | None:
        """Ends the namespace, and returns why a test that has passed fails nevertheless."""
        report: str | None = self._ask("POST", "end", {"passed": self.passed})["report"]
        return report if self.passed else None

    def _settled(self, within: float | timedelta) -> Any:
        return self._ask("POST", "settled", {"within": within, "refuse": False})

    def _ask(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        return self._control.ask(method, f"{self._path}/{path}", body, **query)


@contextmanager
def namespace(topology: Declared = None, emulator: Emulator | None = None) -> Iterator[ServiceBus]:
    """A namespace for as long as a block takes; without a topology it holds one queue, `queue.1`."""
    servicebus = ServiceBus(emulator or shared(), topology)
    try:
        yield servicebus
        servicebus.passed = True
    finally:
        problem = servicebus.end()
    if problem:
        raise AssertionError(problem)
