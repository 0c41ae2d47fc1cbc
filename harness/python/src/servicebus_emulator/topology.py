"""What a namespace holds, in the format of the official emulator's configuration file.

`queue`, `topic` and `subscription` take every property of that format under its name in snake case, such as
`max_delivery_count=3`; durations are `timedelta`. The emulator checks all of it, and names what is wrong.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from .control import EmulatorError

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
    namespace: dict[str, Any] = {"Name": "tests", "Queues": named("queues", queues), "Topics": named("topics", topics)}
    if settings is not None:
        namespace["Emulator"] = dict(settings)
    return {"UserConfig": {"Namespaces": [namespace]}}


def queue(name: str, **properties: Property) -> dict[str, Any]:
    """A queue: `queue("orders", max_delivery_count=3, lock_duration=timedelta(seconds=30))`."""
    return {"Name": name, "Properties": pascal(properties)}


def topic(name: str, subscriptions: Iterable[Entity] = (), **properties: Property) -> dict[str, Any]:
    """A topic with subscriptions, each a name or made by `subscription`."""
    return {"Name": name, "Properties": pascal(properties), "Subscriptions": named("subscriptions", subscriptions)}


def subscription(name: str, rules: Iterable[Mapping[str, Any]] = (), **properties: Property) -> dict[str, Any]:
    """A subscription with rules, each made by `rule`; without any it selects every message."""
    return {"Name": name, "Properties": pascal(properties), "Rules": named("rules", rules)}


def rule(
    name: str, sql: str | None = None, correlation: Mapping[str, Any] | None = None, action: str | None = None
) -> dict[str, Any]:
    """A rule: `rule("high", "price > 10", action="SET tag = 'high'")`, or `correlation={"Label": "order"}`."""
    given = {
        "CorrelationFilter": correlation,
        "SqlFilter": sql and {"SqlExpression": sql},
        "Action": action and {"SqlExpression": action},
    }
    kind = "Correlation" if correlation else "Sql" if sql else "True"
    return {"Name": name, "Properties": {"FilterType": kind} | {key: value for key, value in given.items() if value}}


def encoded(declared: Declared) -> object:
    """The body of a request: a configuration as it is, or the content of its file."""
    return Path(declared).read_bytes() if isinstance(declared, str | Path) else declared


def named(what: str, entities: Iterable[Entity]) -> list[dict[str, Any]]:
    if isinstance(entities, str):
        raise EmulatorError(f"{what} is a list: [{entities!r}], not {entities!r}")
    return [{"Name": entity} if isinstance(entity, str) else dict(entity) for entity in entities]


def pascal(properties: Mapping[str, Property]) -> dict[str, Any]:
    return {
        name.title().replace("_", ""): f"PT{value.total_seconds():f}S" if isinstance(value, timedelta) else value
        for name, value in properties.items()
    }
