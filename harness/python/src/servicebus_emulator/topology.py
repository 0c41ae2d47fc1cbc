"""What a namespace holds.

`queue`, `topic` and `subscription` take every property of the official emulator's configuration file under its name in
snake case, such as `max_delivery_count=3`; durations are `timedelta`. The emulator checks all of it, and names what is
wrong.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

__tracebackhide__ = True

Declared = Mapping[str, Any] | str | Path | None
Entity = str | Mapping[str, Any]
Property = str | int | bool | timedelta


def topology(
    queues: Iterable[Entity] = (), topics: Iterable[Entity] = (), settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A namespace with these queues and topics, each a name or made by `queue` or `topic`.

    `settings` is the block `Emulator` of a namespace, such as `{"Expiry": "on-receive"}`.
    """
    return {"queues": listed(queues), "topics": listed(topics), "settings": settings}


def queue(name: str, **properties: Property) -> dict[str, Any]:
    """A queue: `queue("orders", max_delivery_count=3, lock_duration=timedelta(seconds=30))`."""
    return {"name": name, **properties}


def topic(name: str, subscriptions: Iterable[Entity] = (), **properties: Property) -> dict[str, Any]:
    """A topic with subscriptions, each a name or made by `subscription`."""
    return {"name": name, "subscriptions": listed(subscriptions), **properties}


def subscription(name: str, rules: Iterable[Mapping[str, Any]] = (), **properties: Property) -> dict[str, Any]:
    """A subscription with rules, each made by `rule`; without any it selects every message."""
    return {"name": name, "rules": listed(rules), **properties}


def rule(
    name: str, sql: str | None = None, correlation: Mapping[str, Any] | None = None, action: str | None = None
) -> dict[str, Any]:
    """A rule: `rule("high", "price > 10", action="SET tag = 'high'")`, or `correlation={"Label": "order"}`."""
    return {"name": name, "sql": sql, "correlation": correlation, "action": action}


def encoded(declared: Declared) -> object:
    """The body of a request: what is declared as it is, or the content of its file."""
    return Path(declared).read_bytes() if isinstance(declared, str | Path) else declared


def listed(items: Iterable[Any]) -> object:
    """A list; a text is left as it is, for the emulator to refuse."""
    return items if isinstance(items, str) else list(items)
