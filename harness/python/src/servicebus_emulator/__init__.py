"""Azure Service Bus in tests: an emulator that runs as long as the tests do, and a namespace in it for each of them.

In pytest a test names the fixture `servicebus`. Elsewhere `namespace` does the same as a context manager:

    with namespace(topology(queues=["orders"])) as servicebus:
        work(servicebus.connection_string)
"""

from .assertions import contains
from .control import EmulatorError
from .faults import Fault, Faults, Operations
from .namespace import Event, ServiceBus, Timeline, namespace
from .process import Emulator
from .topology import queue, rule, subscription, topic, topology

__all__ = [
    "Emulator",
    "EmulatorError",
    "Event",
    "Fault",
    "Faults",
    "Operations",
    "ServiceBus",
    "Timeline",
    "contains",
    "namespace",
    "queue",
    "rule",
    "subscription",
    "topic",
    "topology",
]
