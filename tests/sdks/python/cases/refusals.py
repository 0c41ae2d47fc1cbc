"""Other errors, as the SDK's error, and whether it is retryable.

Source: service-bus-messaging-exceptions, service-bus-quotas. Every case that expects an error checks
whether it is retryable; these have the conditions that belong to no other topic.
"""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusConnectionError, ServiceBusError

from bus import ENVIRONMENT, expect_counts, expect_error, transport


async def wrong_key(bus):
    """A client with a wrong key has no access to any entity.

    With a custom endpoint, as for WebSockets, the SDK reports a rejected token as a failed connection.
    """
    own_endpoint = "custom_endpoint_address" in transport()
    kind = ServiceBusConnectionError if own_endpoint else ServiceBusAuthenticationError
    wrong = ENVIRONMENT.get()["SERVICEBUS_CONNECTION_STRING"].replace("SharedAccessKey=", "SharedAccessKey=not")
    async with bus.trying_once(wrong) as stranger:
        with expect_error(kind):
            await stranger.send("orders", ServiceBusMessage("forged"))
        with expect_error(kind):
            await stranger.receiver("orders").receive_messages(1, max_wait_time=30)


async def to_dead_letters(bus):
    """No client sends to a dead-letter queue."""
    with expect_error(ServiceBusError, "amqp:not-allowed"):
        await bus.send("orders/$DeadLetterQueue", ServiceBusMessage("bad"))


async def long_property(bus):
    """A property of more than 32 KB is an internal error of the service, which is retryable."""
    async with bus.trying_once() as bus_once:
        with expect_error(ServiceBusError, "amqp:internal-error"):
            message = ServiceBusMessage("wide", application_properties={"wide": "w" * 40_000})
            await bus_once.send("orders", message)
    await expect_counts(bus, "orders", active=0)
