"""Azure Service Bus for tests: the pytest fixture `servicebus`, or `with namespace(…) as servicebus` without pytest."""

from .assertions import contains as contains
from .control import EmulatorError as EmulatorError
from .faults import Fault as Fault, Faults as Faults, Operations as Operations
from .namespace import Event as Event, ServiceBus as ServiceBus, Timeline as Timeline, namespace as namespace
from .process import Emulator as Emulator
from .topology import queue as queue, rule as rule, subscription as subscription, topic as topic, topology as topology
