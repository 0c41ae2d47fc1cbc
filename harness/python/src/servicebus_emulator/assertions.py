"""Assertions as typed methods: the emulator evaluates them, waits until they hold, and explains failures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from .control import Control

if TYPE_CHECKING:
    from typing_extensions import Unpack

__tracebackhide__ = True


class Contains(TypedDict):
    """Matches a text that contains this part."""

    contains: str | bytes


def contains(part: str | bytes) -> Contains:
    """Matches a text that contains this part: `reason=contains("Max")`."""
    return {"contains": part}


# Bytes are decoded as UTF-8.
Text = str | bytes | Contains
Duration = float | timedelta
Binary = bytes


class Waits(TypedDict, total=False):
    """The maximum time to wait, in seconds of real time; the default is 5."""

    within: Duration


class Messages(Waits, total=False):
    """Selects messages by id or body; without a field, all messages."""

    message_id: Text
    body: Text
    body_json: Any


class Counted(Messages, total=False):
    """The exact number of messages; without it, at least one."""

    count: int


class Repeated(Messages, total=False):
    """The exact or minimum number of times; without either, at least once."""

    times: int
    at_least: int


class Targeted(Messages, total=False):
    """The client that receives messages, or the entity to which they are forwarded."""

    to: Text


class Delivered(Repeated, Targeted, total=False):
    """The number of deliveries, and the client that receives them."""


class Forwarded(Counted, Targeted, total=False):
    """The number of messages, and the entity to which they are forwarded."""


class DeadLetters(Messages, total=False):
    """Selects dead-lettered messages by reason and description, too."""

    reason: Text
    description: Text


class CountedDeadLetters(DeadLetters, Counted, total=False):
    """The number of dead-lettered messages, and which."""


class Timed(Messages, total=False):
    """When scheduled messages are due, by the test's own clock; the default tolerance is 10 s.

    A time without a zone is in UTC, as in azure-servicebus.
    """

    at: datetime
    due_in: Duration
    tolerance: Duration


class CountedTimed(Timed, Counted, total=False):
    """The number of scheduled messages, and when they are due."""


class Receivers(Waits, total=False):
    """The client that receives, and the exact number of receivers; without it, at least one."""

    to: Text
    count: int


class Numbers(Waits, total=False):
    """Exact numbers of messages by state; at least one is required."""

    active: int
    dead_letter: int
    transfer_dead_letter: int
    scheduled: int
    locked: int
    deferred: int
    transfer: int


class Bounds(Waits, total=False):
    """An exact, minimum or maximum number."""

    count: int
    at_least: int
    at_most: int


class State(Waits, total=False):
    """The state of a session, in one of these forms; without one, any state."""

    text: Text
    bytes: Binary
    json: Any
    set: bool


class Assertions:
    """The assertions of a namespace. Each waits until it holds, a negative one until the namespace is idle."""

    _control: Control
    _path: str

    def assert_attached(self, entity: str, **fields: Unpack[Receivers]) -> None:
        """Clients receive from the entity, or wait for one of its sessions."""
        self.expect(entity, "attached", **fields)

    def assert_dead_lettered(self, entity: str, **fields: Unpack[CountedDeadLetters]) -> None:
        """Messages are in the dead-letter queue."""
        self.expect(entity, "dead_lettered", **fields)

    def assert_not_dead_lettered(self, entity: str, **fields: Unpack[DeadLetters]) -> None:
        """No messages are in the dead-letter queue."""
        self.expect(entity, "not_dead_lettered", **fields)

    def assert_completed(self, entity: str, **fields: Unpack[Counted]) -> None:
        """Messages were completed."""
        self.expect(entity, "completed", **fields)

    def assert_not_completed(self, entity: str, **fields: Unpack[Messages]) -> None:
        """No messages were completed."""
        self.expect(entity, "not_completed", **fields)

    def assert_delivered(self, entity: str, **fields: Unpack[Delivered]) -> None:
        """Messages were delivered to receivers, with a lock or without."""
        self.expect(entity, "delivered", **fields)

    def assert_not_delivered(self, entity: str, **fields: Unpack[Targeted]) -> None:
        """No messages were delivered."""
        self.expect(entity, "not_delivered", **fields)

    def assert_abandoned(self, entity: str, **fields: Unpack[Repeated]) -> None:
        """Deliveries were abandoned."""
        self.expect(entity, "abandoned", **fields)

    def assert_not_abandoned(self, entity: str, **fields: Unpack[Messages]) -> None:
        """No deliveries were abandoned."""
        self.expect(entity, "not_abandoned", **fields)

    def assert_lock_renewed(self, entity: str, **fields: Unpack[Repeated]) -> None:
        """Locks were renewed."""
        self.expect(entity, "lock_renewed", **fields)

    def assert_lock_not_renewed(self, entity: str, **fields: Unpack[Messages]) -> None:
        """No locks were renewed."""
        self.expect(entity, "lock_not_renewed", **fields)

    def assert_deferred(self, entity: str, **fields: Unpack[Counted]) -> None:
        """The entity holds deferred messages."""
        self.expect(entity, "deferred", **fields)

    def assert_not_deferred(self, entity: str, **fields: Unpack[Messages]) -> None:
        """The entity holds no deferred messages."""
        self.expect(entity, "not_deferred", **fields)

    def assert_scheduled(self, entity: str, **fields: Unpack[CountedTimed]) -> None:
        """The entity holds scheduled messages."""
        self.expect(entity, "scheduled", **fields)

    def assert_not_scheduled(self, entity: str, **fields: Unpack[Timed]) -> None:
        """The entity holds no scheduled messages."""
        self.expect(entity, "not_scheduled", **fields)

    def assert_expired(self, entity: str, **fields: Unpack[Counted]) -> None:
        """Messages expired, and were discarded or dead-lettered."""
        self.expect(entity, "expired", **fields)

    def assert_not_expired(self, entity: str, **fields: Unpack[Messages]) -> None:
        """No messages expired."""
        self.expect(entity, "not_expired", **fields)

    def assert_forwarded(self, entity: str, **fields: Unpack[Forwarded]) -> None:
        """Messages were forwarded to another entity."""
        self.expect(entity, "forwarded", **fields)

    def assert_not_forwarded(self, entity: str, **fields: Unpack[Targeted]) -> None:
        """No messages were forwarded."""
        self.expect(entity, "not_forwarded", **fields)

    def assert_unsettled_sends(self, entity: str, **fields: Unpack[Bounds]) -> None:
        """The greatest number of sends that waited for their outcomes at the same time."""
        self.expect(entity, "unsettled_sends", **fields)

    def assert_message_count(self, entity: str, **fields: Unpack[Numbers]) -> None:
        """The entity holds exactly these numbers of messages."""
        self.expect(entity, "message_count", **fields)

    def assert_session_order(self, entity: str, session: str, bodies: Sequence[Text], **fields: Unpack[Waits]) -> None:
        """The session holds messages with exactly these bodies, in this order."""
        self.expect(entity, "session_order", session=session, bodies=bodies, **fields)

    def assert_session_state(self, entity: str, session: str, **fields: Unpack[State]) -> None:
        """The session has a state, or this one."""
        self.expect(entity, "session_state", session=session, **fields)

    def assert_empty(self, entity: str, **fields: Unpack[Waits]) -> None:
        """The entity holds no messages in any state; its dead-letter queue is not part of it."""
        self.expect(entity, "empty", **fields)

    def expect(self, entity: str, kind: str, **fields: Any) -> None:
        """An assertion by its kind in the control API: `expect("orders", "dead_lettered", reason="Rejected")`."""
        assertion = {"kind": kind, "entity": entity, **fields}
        result = self._control.ask("POST", f"{self._path}/assertions", assertion, TypeError)
        if not result["holds"]:
            raise AssertionError(result["failure"])
