"""Assertions: typed names for those of the emulator, which waits and says why one fails."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from .control import Control

if TYPE_CHECKING:
    from typing_extensions import Unpack

__tracebackhide__ = True


class Contains(TypedDict):
    """A text that is to be a part of another."""

    contains: str | bytes


def contains(part: str | bytes) -> Contains:
    """Expects a text to contain another: `reason=contains("Max")`."""
    return {"contains": part}


# Bytes are text in UTF-8.
Text = str | bytes | Contains
Duration = float | timedelta
Binary = bytes


class Waits(TypedDict, total=False):
    """How long to wait, in seconds of real time: 5 unless said."""

    within: Duration


class Messages(Waits, total=False):
    """Which messages: all of them, unless one of these says more."""

    message_id: Text
    body: Text
    body_json: Any


class Counted(Messages, total=False):
    """Exactly so many; one at least unless said."""

    count: int


class Repeated(Messages, total=False):
    """Exactly so often, or so often at least; once at least unless said."""

    times: int
    at_least: int


class Targeted(Messages, total=False):
    """The client or the entity to which something goes."""

    to: Text


class Delivered(Repeated, Targeted, total=False):
    """How often, and to which client."""


class Forwarded(Counted, Targeted, total=False):
    """How many, and to which entity."""


class DeadLetters(Messages, total=False):
    """Which dead letters."""

    reason: Text
    description: Text


class CountedDeadLetters(DeadLetters, Counted, total=False):
    """How many, and which."""


class Timed(Messages, total=False):
    """When messages are due, by the test's own clock; that may differ by 10 s unless said otherwise."""

    at: datetime
    due_in: Duration
    tolerance: Duration


class CountedTimed(Timed, Counted, total=False):
    """How many, and when they are due."""


class Receivers(Waits, total=False):
    """Of which client, and how many; one at least unless said."""

    to: Text
    count: int


class Numbers(Waits, total=False):
    """How many messages there are; one of the numbers must be named."""

    active: int
    dead_letter: int
    transfer_dead_letter: int
    scheduled: int
    locked: int
    deferred: int
    transfer: int


class Bounds(Waits, total=False):
    """How many exactly, at least or at most."""

    count: int
    at_least: int
    at_most: int


class State(Waits, total=False):
    """What is kept with a session: one of these; any state unless said."""

    text: Text
    bytes: Binary
    json: Any
    set: bool


class Assertions:
    """The assertions of a namespace. They wait until they hold; those that something is not, until all is idle."""

    _control: Control
    _path: str

    def assert_attached(self, entity: str, **fields: Unpack[Receivers]) -> None:
        """Clients receive from it, or wait for a session."""
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
        """Messages in it are deferred."""
        self.expect(entity, "deferred", **fields)

    def assert_not_deferred(self, entity: str, **fields: Unpack[Messages]) -> None:
        """No messages in it are deferred."""
        self.expect(entity, "not_deferred", **fields)

    def assert_scheduled(self, entity: str, **fields: Unpack[CountedTimed]) -> None:
        """Messages in it are scheduled."""
        self.expect(entity, "scheduled", **fields)

    def assert_not_scheduled(self, entity: str, **fields: Unpack[Timed]) -> None:
        """No messages in it are scheduled."""
        self.expect(entity, "not_scheduled", **fields)

    def assert_expired(self, entity: str, **fields: Unpack[Counted]) -> None:
        """Messages expired, and were dropped or dead-lettered."""
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
        """So many sends waited for their outcome at once."""
        self.expect(entity, "unsettled_sends", **fields)

    def assert_message_count(self, entity: str, **fields: Unpack[Numbers]) -> None:
        """There are exactly so many messages."""
        self.expect(entity, "message_count", **fields)

    def assert_session_order(self, entity: str, session: str, bodies: Sequence[Text], **fields: Unpack[Waits]) -> None:
        """A session holds messages with these bodies in this order, and no others."""
        self.expect(entity, "session_order", session=session, bodies=bodies, **fields)

    def assert_session_state(self, entity: str, session: str, **fields: Unpack[State]) -> None:
        """Something is kept with a session."""
        self.expect(entity, "session_state", session=session, **fields)

    def assert_empty(self, entity: str, **fields: Unpack[Waits]) -> None:
        """It holds no messages of any state; dead letters are not in it."""
        self.expect(entity, "empty", **fields)

    def expect(self, entity: str, kind: str, **fields: Any) -> None:
        """The assertion of a name: `expect("orders", "dead_lettered", reason="Rejected")`."""
        request = {"kind": kind, "entity": entity, **fields}
        answer = self._control.ask("POST", f"{self._path}/assertions", request, TypeError)
        if not answer["holds"]:
            raise AssertionError(answer["failure"])
