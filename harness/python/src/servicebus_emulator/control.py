"""Requests to the emulator's control API."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
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

    def ask(
        self, method: str, path: str, body: object = None, invalid: type[Exception] = EmulatorError, **query: str | None
    ) -> Any:
        """Asks, and returns the answer; a refusal is raised as a sentence, that of the request itself as `invalid`."""
        known = {name: value for name, value in query.items() if value is not None}
        target = f"/$emulator/v1/{path}" + (f"?{urlencode(known)}" if known else "")
        data = body if isinstance(body, bytes | None) else json.dumps(body, default=plain).encode()
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
        answer: Any = json.loads(text) if is_json and text else text.decode()
        if response.status < 400:
            return answer
        sentence = answer["error"]["text"] if is_json else f"the emulator answered {response.status}: {answer}"
        raise (invalid if response.status == 400 else EmulatorError)(sentence)


def plain(value: object) -> object:
    """A value that JSON does not have: durations are seconds, instants RFC 3339."""
    match value:
        case bytes():
            return {"$bytes": b64encode(value).decode()}
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.astimezone().isoformat()
        case Mapping():
            return dict(value)
        case Iterable():
            return list(value)
        case _:
            raise TypeError(f"{value!r} cannot be sent as JSON")
