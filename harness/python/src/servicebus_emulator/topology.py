"""Topologies. Properties have the names of a configuration file in snake case; the emulator validates them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from .control import EmulatorError

__tracebackhide__ = True

Declared = Mapping[str, Any] | str | Path | None
Entity = str | Mapping[str, Any]
Property = str | int | bool | timedelta


def topology(
    queues: Iterable[Entity] | None = None,
    topics: Iterable[Entity] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Queues and topics, each a name or from `queue` or `topic`; `settings`, such as `{"Expiry": "on-receive"}`.

    Without queues and topics it has one queue, `queue.1`.
    """
    return {"queues": reusable(queues), "topics": reusable(topics), "settings": settings}


def queue(name: str, **properties: Property) -> dict[str, Any]:
    """A queue: `queue("orders", max_delivery_count=3, lock_duration=timedelta(seconds=30))`."""
    return {"name": name, **properties}


def topic(name: str, subscriptions: Iterable[Entity] = (), **properties: Property) -> dict[str, Any]:
    """A topic with subscriptions, each a name or the result of `subscription`."""
    return {"name": name, "subscriptions": reusable(subscriptions), **properties}


def subscription(name: str, rules: Iterable[Mapping[str, Any]] = (), **properties: Property) -> dict[str, Any]:
    """A subscription with rules, each the result of `rule`; without rules it receives every message."""
    return {"name": name, "rules": reusable(rules), **properties}


def rule(
    name: str, sql: str | None = None, correlation: Mapping[str, Any] | None = None, action: str | None = None
) -> dict[str, Any]:
    """A rule: `rule("high", "price > 10", action="SET tag = 'high'")`, or `correlation={"Label": "order"}`."""
    return {"name": name, "sql": sql, "correlation": correlation, "action": action}


def encoded(declared: Declared) -> object:
    """The body of a request: the topology itself, or the content of its file."""
    if isinstance(declared, str | Path):
        return Path(declared).read_bytes()
    if not isinstance(declared, Mapping | None):
        it = "a topology is the result of `topology(…)` or the path of a configuration file"
        raise EmulatorError(f"{it}, not {declared!r}; an emulator is the argument `emulator`")
    if declared is None or any(declared.get(part) is not None for part in ("queues", "topics", "UserConfig")):
        return declared
    return {**declared, "queues": ["queue.1"]}


def reusable(items: Iterable[Any] | None) -> Iterable[Any] | None:
    """The items of an iterator as a list, because several tests may have the same topology."""
    return list(items) if isinstance(items, Iterator) else items
