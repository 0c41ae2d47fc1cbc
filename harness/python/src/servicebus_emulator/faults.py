"""Faults: operations of clients go wrong where the test says so. One that has not fired when the test ends fails it."""

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
        """Operations of clients, as the control API has them: `on("complete", entity="orders", nth=2)`."""
        return Operations(self._control, f"{self._path}/faults", {"operation": operation, **which})

    def service_update(self) -> None:
        """Ends all locks and links, as when the service is updated."""
        self._control.ask("POST", f"{self._path}/service-update")


class Operations:
    """Operations that are to go wrong. Each method scripts what becomes of them."""

    def __init__(self, control: Control, path: str, request: dict[str, Any]) -> None:
        self._control = control
        self._path = path
        self._request = request

    def apply(self, effect: str, **details: Any) -> "Fault":
        """Any effect of the control API, by its name: `apply("hold-back", behind=2)`."""
        scripted = {"effect": {effect: details} if details else effect, "written_at": place()}
        made = self._control.ask("POST", self._path, {**self._request, **scripted})
        return Fault(self._control, f"{self._path}/{made['id']}", made["id"])

    def lose_reply(self) -> "Fault":
        """It happens, and the client gets no reply."""
        return self.apply("lose-reply")

    def reject(self, condition: str, **description: str) -> "Fault":
        """It does not happen, and the client gets the AMQP condition."""
        return self.apply("reject", condition=condition, **description)

    def server_busy(self) -> "Fault":
        """It does not happen, and the client is told to wait."""
        return self.reject("com.microsoft:server-busy")

    def answer(self, status: int, **error: str) -> "Fault":
        """A request is answered with this status."""
        return self.apply("answer", status=status, **error)

    def detach(self, condition: str = "amqp:link:detach-forced", when: When = "before") -> "Fault":
        """The link is closed before it happens, or after."""
        return self.apply("detach", condition=condition, when=when)

    def drop_connection(self, when: When = "before") -> "Fault":
        """The connection ends without a close frame before it happens, or after."""
        return self.apply("drop", when=when)

    def delay(self, seconds: float | timedelta, clock: Literal["virtual", "real"] = "virtual") -> "Fault":
        """It happens later."""
        return self.apply("delay", seconds=seconds, clock=clock)

    def lose_lock(self) -> "Fault":
        """The lock ends: before a settlement or renewal, after a delivery."""
        return self.apply("lose-lock")

    def lose_session_lock(self) -> "Fault":
        """The lock of the session ends."""
        return self.apply("lose-session-lock")

    def redeliver(self) -> "Fault":
        """The client is told that its completion has happened, and the message is delivered again."""
        return self.apply("deliver-twice")


class Fault:
    """A fault that was scripted."""

    def __init__(self, control: Control, path: str, number: int) -> None:
        self.id = number
        self._ask = partial(control.ask, path=path)

    @property
    def hits(self) -> int:
        """How often it fired."""
        return int(self._ask("GET")["hits"])

    def remove(self) -> None:
        """Takes it out; it need not have fired."""
        self._ask("DELETE")


def place() -> str:
    """The line of the test, which is the first outside of this file."""
    frame = sys._getframe()
    while frame.f_back and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
