"""Requests to the emulator's control API."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

__tracebackhide__ = True  # Failures show the line of the test.

LONGEST_SECONDS = 600


class EmulatorError(RuntimeError):
    """What the emulator refused or could not do, in a sentence."""


class Control:
    """The control API of an emulator; `why_it_ended` tells what became of an emulator that does not answer."""

    def __init__(self, address: str, why_it_ended: Callable[[], str]) -> None:
        self._address = address
        self._why_it_ended = why_it_ended

    def ask(self, method: str, path: str, body: object = None, **query: str | int | None) -> Any:
        """Asks, and returns the answer; one that refuses is raised as a sentence."""
        status, answer = self.answer(method, path, body, **query)
        if status < 400:
            return answer
        raise EmulatorError(told(answer, status))

    def answer(self, method: str, path: str, body: object = None, **query: str | int | None) -> tuple[int, Any]:
        """Asks, and returns the status and what was answered, a refusal too."""
        known = {name: value for name, value in query.items() if value is not None}
        target = f"/$emulator/v1/{path}" + (f"?{urlencode(known)}" if known else "")
        data = body if isinstance(body, bytes | None) else encoded(body)
        connection = HTTPConnection(self._address, timeout=LONGEST_SECONDS + 30)
        try:
            connection.request(method, target, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
        except (OSError, HTTPException) as error:
            raise EmulatorError(f"{self._why_it_ended()} ({method} {target}: {error})") from None
        finally:
            connection.close()
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        return response.status, json.loads(text) if is_json and text else text.decode()


def encoded(body: object) -> bytes:
    """A body as JSON: durations in seconds, instants in RFC 3339."""
    try:
        return json.dumps(body, default=plain).encode()
    except TypeError as error:
        raise TypeError(str(error)) from None  # Without the frames of `json`.


def plain(value: object) -> float | str:
    """A value that JSON does not have, as the control API takes it."""
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.astimezone().isoformat()
        case _:
            raise TypeError(f"{value!r} cannot be sent as JSON")


def told(answer: Any, status: int) -> str:
    """A refusal as a sentence, with every problem of a topology."""
    if not isinstance(answer, dict) or "error" not in answer:
        return f"the emulator answered {status}: {answer}"
    error = answer["error"]
    problems = [f"{problem['path']} {problem['value']}: {problem['allowed']}" for problem in error.get("problems", ())]
    return ": ".join([error["message"], "; ".join(problems)] if problems else [error["message"]])
