"""The parameters of a case: clients of the tested variant of the SDK, and the emulator's control API.

The SDK has two flavours with the same names, one blocking and one to be awaited. Cases await
both: `Awaitable` makes a call of the blocking one look awaitable without changing what it does.
"""

import asyncio
import contextlib
import contextvars
import datetime
import inspect
import json
import os
import time
import urllib.parse
import urllib.request

import azure.servicebus
import azure.servicebus.aio
import azure.servicebus.aio.management
import azure.servicebus.management
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusSubQueue, TransportType
from azure.servicebus.exceptions import ServiceBusAuthenticationError

# Long enough for a busy machine, short enough to detect a hang.
WAIT_SECONDS = 45
# The time that the SDK waits for a message that must not arrive.
NOTHING_SECONDS = 0.3

# Retryable errors (service-bus-messaging-exceptions); others are not retryable.
RETRYABLE = {
    "amqp:internal-error",
    "amqp:link:detach-forced",
    "amqp:connection:forced",
    "com.microsoft:timeout",
    "com.microsoft:server-busy",
    "com.microsoft:operation-cancelled",
    "com.microsoft:store-lock-lost",
    "com.microsoft:partition-not-owned",
}
# Errors that this SDK retries nevertheless: it has a list of conditions that are not retryable, without
# these. The last is its own condition for a rejected token.
RETRIED_NEVERTHELESS = {
    "com.microsoft:entity-disabled",
    "com.microsoft:message-not-found",
    "com.microsoft:session-cannot-be-locked",
    "amqp:client-error",
}


# The settings of a case, whose threads and tasks inherit them.
ENVIRONMENT = contextvars.ContextVar("environment", default=os.environ)

MODULES = {"sync": azure.servicebus, "async": azure.servicebus.aio}


class Awaitable:
    """Lets a case await the blocking clients; every call has ended when it returns."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        attribute = getattr(self._inner, name)
        if not callable(attribute):
            return attribute

        async def call(*args, **kwargs):
            return attribute(*args, **kwargs)

        return call

    async def __aenter__(self):
        self._inner.__enter__()
        return self

    async def __aexit__(self, *failure):
        return self._inner.__exit__(*failure)

    async def __aiter__(self):
        for item in self._inner:
            yield item


class Bus:
    """A namespace as one variant of the SDK sees it."""

    def __init__(self, flavour, client):
        self.flavour = flavour
        environment = ENVIRONMENT.get()
        self.expiry = environment["SERVICEBUS_EXPIRY"]
        self.locks_on_detach = environment["SERVICEBUS_LOCKS_ON_DETACH"]
        self._client = client
        self._module = MODULES[flavour]
        self._control = environment["SERVICEBUS_CONTROL_URL"].rstrip("/")

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, flavour, connection_string=None, **options):
        """A namespace whose client is closed at the end, as an application does."""
        connection_string = connection_string or ENVIRONMENT.get()["SERVICEBUS_CONNECTION_STRING"]
        client = MODULES[flavour].ServiceBusClient.from_connection_string(connection_string, **transport(), **options)
        try:
            yield cls(flavour, client)
        finally:
            closing = client.close()
            if closing is not None:
                await closing

    def trying_once(self, connection_string=None):
        """The same namespace through a client that does not retry."""
        return Bus.connect(self.flavour, connection_string, retry_total=0)

    def administration(self, connection_string=None):
        """An administration client; it supports only TLS."""
        module = {"sync": azure.servicebus.management, "async": azure.servicebus.aio.management}[self.flavour]
        connection_string = connection_string or ENVIRONMENT.get()["SERVICEBUS_ADMIN_CONNECTION_STRING"]
        client = module.ServiceBusAdministrationClient.from_connection_string(
            connection_string, connection_verify=ENVIRONMENT.get()["SERVICEBUS_CA_FILE"]
        )
        return self._awaitable(client)

    def sender(self, queue):
        """A sender that opens its link when entered or first used."""
        return self._awaitable(self._client.get_queue_sender(queue))

    def receiver(self, queue, **options):
        """A receiver that opens its link when entered or first used."""
        return self._awaitable(self._client.get_queue_receiver(queue, **options))

    def dead_letters(self, queue, **options):
        """A receiver of the queue's dead-lettered messages."""
        return self.receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER, **options)

    def transfer_dead_letters(self, queue, **options):
        """A receiver of messages that the queue could not forward."""
        return self.receiver(queue, sub_queue=ServiceBusSubQueue.TRANSFER_DEAD_LETTER, **options)

    def publisher(self, topic):
        """A sender to a topic."""
        return self._awaitable(self._client.get_topic_sender(topic))

    def subscriber(self, topic, subscription, **options):
        """A receiver of a subscription."""
        return self._awaitable(self._client.get_subscription_receiver(topic, subscription, **options))

    def next_session(self, queue, wait=WAIT_SECONDS, **options):
        """A receiver of the next available session, for which it waits this long when it opens."""
        return self.receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=wait, **options)

    def session(self, receiver):
        """The session that an open receiver has locked."""
        return self._awaitable(receiver.session)

    def opening(self, receiver):
        """Starts a task that opens a receiver."""
        if self.flavour == "sync":
            return asyncio.create_task(asyncio.to_thread(receiver._inner.__enter__))
        return asyncio.create_task(receiver.__aenter__())

    @contextlib.asynccontextmanager
    async def renewer(self, **options):
        """The SDK's `AutoLockRenewer`, as its receivers take it."""
        renewer = self._module.AutoLockRenewer(**options)
        try:
            yield renewer
        finally:
            closing = renewer.close()
            if closing is not None:
                await closing

    async def sessions(self, queue, **options):
        """The ids of a queue's sessions."""
        return await listed(self._client.list_queue_sessions(queue, **options))

    async def sessions_of_subscription(self, topic, subscription, **options):
        """The ids of a subscription's sessions."""
        return await listed(self._client.list_subscription_sessions(topic, subscription, **options))

    async def send(self, queue, *messages):
        """Sends the messages one by one and closes the sender."""
        await send_all(self.sender(queue), messages)

    async def publish(self, topic, *messages):
        """Sends the messages to a topic one by one and closes the sender."""
        await send_all(self.publisher(topic), messages)

    async def advance(self, seconds):
        """Advances the namespace's clock, and returns when everything that is due by then has been processed."""
        await asyncio.to_thread(self._request, "clock/advance", {"seconds": seconds})

    async def counts(self, entity):
        """The emulator's counts of an entity, without a link to the entity."""
        return await asyncio.to_thread(self._request, f"counts?entity={urllib.parse.quote(entity)}")

    async def configure(self, queue, **properties):
        """Changes these properties of a queue and keeps the others."""
        await asyncio.to_thread(self._request, f"queues/{queue}", properties, "PUT")

    async def delete(self, queue):
        """Deletes a queue."""
        await asyncio.to_thread(self._request, f"queues/{queue}", None, "DELETE")

    def _awaitable(self, inner):
        return Awaitable(inner) if self.flavour == "sync" else inner

    def _request(self, path, body=None, method=None):
        request = urllib.request.Request(
            f"{self._control}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            return json.loads(answer.read() or "null")


def transport():
    """How a client connects."""
    name = ENVIRONMENT.get()["SERVICEBUS_TRANSPORT"]
    options = {}
    if name in ("tls", "websocket-tls"):
        options["connection_verify"] = ENVIRONMENT.get()["SERVICEBUS_CA_FILE"]
    if name.startswith("websocket"):
        options["transport_type"] = TransportType.AmqpOverWebsocket
        # The only option to set the port.
        options["custom_endpoint_address"] = f"sb://{ENVIRONMENT.get()['SERVICEBUS_WEB_ADDRESS']}"
    return options


async def send_all(sender, messages):
    """Sends the messages one by one and closes the sender."""
    async with sender:
        for message in messages:
            await sender.send_messages(message)


async def listed(pages):
    """All items of the pages of either variant."""
    if hasattr(pages, "__aiter__"):
        return [item async for item in pages]
    return list(pages)


async def everything(listing):
    """All items of a listing of either variant, page by page."""
    if inspect.isawaitable(listing):
        return list(await listing)
    return [item async for item in listing]


async def receive(receiver, count=1):
    """Receives exactly `count` messages, or fails with the number received."""
    messages = []
    deadline = time.monotonic() + WAIT_SECONDS
    while len(messages) < count and time.monotonic() < deadline:
        messages += await receiver.receive_messages(count - len(messages), max_wait_time=WAIT_SECONDS)
    expect("number of messages received", len(messages), count)
    return messages


async def receive_nothing(receiver):
    """Asserts that a receive gets no message."""
    messages = await receiver.receive_messages(1, max_wait_time=NOTHING_SECONDS)
    expect("messages received", [body(message) for message in messages], [])


async def complete_all(receiver, messages):
    """Completes the messages, in their order."""
    for message in messages:
        await receiver.complete_message(message)


async def expect_counts(bus, entity, **expected):
    """Waits until the emulator's counts of an entity have these values."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        counts = await bus.counts(entity)
        seen = {name: counts[name] for name in expected}
        if seen == expected:
            return
        if time.monotonic() >= deadline:
            expect(f"counts of {entity}", seen, expected)
        await asyncio.sleep(0.02)


def expect(what, actual, expected):
    """Fails with both values if they differ."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def expect_fresh_lock(until):
    """Asserts that a lock of one minute ends between 30 s and a minute from now."""
    remaining = until - later(0)
    if not datetime.timedelta(seconds=30) < remaining <= datetime.timedelta(seconds=61):
        raise AssertionError(f"a fresh lock of one minute has {remaining} left by the client's clock")


@contextlib.contextmanager
def expect_error(kind, condition=None, text=""):
    """Asserts that the block raises exactly this error of the SDK, and that its retryable flag is correct."""
    try:
        yield
    except Exception as error:  # the type is checked below
        if type(error) is not kind:
            raise AssertionError(f"expected {kind.__name__}, got {type(error).__name__}: {error}") from error
        # Errors of the SDK itself have no condition; a timeout is wrapped once more.
        actual = getattr(error, "_condition", None) or getattr(error.__cause__, "_condition", None)
        if condition is not None:
            expect(f"condition of {error}", actual, condition)
        if text not in str(error):
            raise AssertionError(f"expected the text {text!r} in {error}")
        is_retried = actual in RETRYABLE | RETRIED_NEVERTHELESS
        expect(f"whether the SDK tries {error} again", error._retryable, is_retried)
    else:
        raise AssertionError(f"expected {kind.__name__}, got no error")


def expect_missing():
    """Asserts that the block fails at an entity that does not exist.

    The service refuses the token for it with 404 (observed.md 13), and this SDK has one error for every token that is
    refused, which it tries again; its own live tests assert that too (`test_sb_client_bad_entity`).
    """
    return expect_error(ServiceBusAuthenticationError, "amqp:client-error")


def later(seconds):
    """A time from now, by the clock of this process."""
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


def bodies(messages):
    """The bodies of messages, in their order."""
    return [body(message) for message in messages]


def body(message):
    """The whole body of a message whose body is data."""
    return b"".join(message.body)
