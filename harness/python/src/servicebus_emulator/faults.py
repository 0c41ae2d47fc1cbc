"""Faults that a test injects into operations of clients. One that has not fired when the test ends fails it."""

import sys
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from .control import Control

__tracebackhide__ = True

When = Literal["before", "after"]


class Faults:
    """The faults of a namespace."""

    def __init__(self, control: Control, path: str) -> None:
        self._control = control
        self._path = path

    def on(self, operation: str, **which: Any) -> "Operations":
        """Selects operations by the fields of the control API: `on("complete", entity="orders", nth=2)`."""
        return Operations(self._control, f"{self._path}/faults", {"operation": operation, **which})

    def service_update(self) -> None:
        """Ends all locks and links, as when the service is updated."""
        self._control.ask("POST", f"{self._path}/service-update")


class Operations:
    """Operations that a fault applies to. Each method adds a fault with one effect."""

    def __init__(self, control: Control, path: str, request: dict[str, Any]) -> None:
        self._control = control
        self._path = path
        self._request = request

    def apply(self, effect: str, **details: Any) -> "Fault":
        """Any effect of the control API, by its name: `apply("hold-back", behind=2)`."""
        request = {**self._request, "effect": {effect: details} if details else effect, "written_at": caller()}
        added = self._control.ask("POST", self._path, request)
        return Fault(self._control, f"{self._path}/{added['id']}", added["id"])

    def lose_reply(self) -> "Fault":
        """The operation succeeds, and the client gets no reply."""
        return self.apply("lose-reply")

    def reject(self, condition: str, **description: str) -> "Fault":
        """The operation fails with this AMQP error condition."""
        return self.apply("reject", condition=condition, **description)

    def server_busy(self) -> "Fault":
        """The operation fails with `com.microsoft:server-busy`."""
        return self.reject("com.microsoft:server-busy")

    def answer(self, status: int, **error: str) -> "Fault":
        """The response to a request has this status."""
        return self.apply("answer", status=status, **error)

    def detach(self, condition: str = "amqp:link:detach-forced", when: When = "before") -> "Fault":
        """The link is detached before the operation, or after it."""
        return self.apply("detach", condition=condition, when=when)

    def drop_connection(self, when: When = "before") -> "Fault":
        """The connection ends without a close frame, before the operation or after it."""
        return self.apply("drop", when=when)

    def delay(self, seconds: float | timedelta, clock: Literal["virtual", "real"] = "virtual") -> "Fault":
        """The operation is delayed."""
        return self.apply("delay", seconds=seconds, clock=clock)

    def lose_lock(self) -> "Fault":
        """The lock ends: before a settlement or renewal, after a delivery."""
        return self.apply("lose-lock")

    def lose_session_lock(self) -> "Fault":
        """The lock of the session ends."""
        return self.apply("lose-session-lock")

    def redeliver(self) -> "Fault":
        """The completion succeeds for the client, but the message is delivered again."""
        return self.apply("deliver-twice")


class Fault:
    """A fault that was added to a namespace."""

    def __init__(self, control: Control, path: str, number: int) -> None:
        self.id = number
        self._ask = partial(control.ask, path=path)

    @property
    def hits(self) -> int:
        """How often the fault has fired."""
        return int(self._ask("GET")["hits"])

    def remove(self) -> None:
        """Removes the fault, which then does not have to fire."""
        self._ask("DELETE")


def caller() -> str:
    """The line of the test: the first in the call stack that is outside of this file."""
    frame = sys._getframe()
    while frame.f_back and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
