"""Topologies. Properties have the names of a configuration file in snake case; the emulator validates them."""

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
    """Queues and topics, each a name or from `queue` or `topic`; `settings`, such as `{"Expiry": "on-receive"}`."""
    return {"queues": queues, "topics": topics, "settings": settings}


def queue(name: str, **properties: Property) -> dict[str, Any]:
    """A queue: `queue("orders", max_delivery_count=3, lock_duration=timedelta(seconds=30))`."""
    return {"name": name, **properties}


def topic(name: str, subscriptions: Iterable[Entity] = (), **properties: Property) -> dict[str, Any]:
    """A topic with subscriptions, each a name or the result of `subscription`."""
    return {"name": name, "subscriptions": subscriptions, **properties}


def subscription(name: str, rules: Iterable[Mapping[str, Any]] = (), **properties: Property) -> dict[str, Any]:
    """A subscription with rules, each the result of `rule`; without rules it receives every message."""
    return {"name": name, "rules": rules, **properties}


def rule(
    name: str, sql: str | None = None, correlation: Mapping[str, Any] | None = None, action: str | None = None
) -> dict[str, Any]:
    """A rule: `rule("high", "price > 10", action="SET tag = 'high'")`, or `correlation={"Label": "order"}`."""
    return {"name": name, "sql": sql, "correlation": correlation, "action": action}


def encoded(declared: Declared) -> object:
    """The body of a request: the topology itself, or the content of its file."""
    return Path(declared).read_bytes() if isinstance(declared, str | Path) else declared
