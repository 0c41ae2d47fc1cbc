"""Requests to the emulator's control API."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode

__tracebackhide__ = True  # pytest shows the line of the test in a failure.


class EmulatorError(RuntimeError):
    """The emulator rejected a request, could not be started, or has ended."""


class Control:
    """The control API of an emulator; `why_it_ended` explains why an emulator does not respond."""

    def __init__(self, address: str, why_it_ended: Callable[[], str]) -> None:
        self._address = address
        self._why_it_ended = why_it_ended

    def ask(
        self, method: str, path: str, body: object = None, invalid: type[Exception] = EmulatorError, **query: str | None
    ) -> Any:
        """Sends a request and returns the response; status 400 is raised as `invalid`, others as `EmulatorError`."""
        parameters = {name: value for name, value in query.items() if value is not None}
        target = f"/$emulator/v1/{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        data = body if isinstance(body, bytes | None) else json.dumps(body, default=plain).encode()
        # Longer than an assertion may wait.
        connection = HTTPConnection(self._address, timeout=630)
        try:
            connection.request(method, target, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
        except (OSError, HTTPException) as error:
            raise EmulatorError(f"{self._why_it_ended()} ({method} {target}: {error})") from None
        finally:
            connection.close()
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        answer: Any = json.loads(text) if is_json and text else text.decode()
        if response.status < 400:
            return answer
        message = answer["error"]["text"] if is_json else f"the emulator responded with {response.status}: {answer}"
        raise (invalid if response.status == 400 else EmulatorError)(message)


def plain(value: object) -> object:
    """Converts what JSON does not have: a duration to seconds, a time, in UTC if it has no zone, to RFC 3339."""
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).isoformat()
    if isinstance(value, Iterable):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError(f"{value!r} cannot be converted to JSON")
