"""The premium tier: messages of any size that their queue allows.

Source: service-bus-premium-messaging. The queue `large` allows ten mebibytes, the others one.
"""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageSizeExceededError

from bus import body, expect, expect_counts, expect_error, receive


async def large_message(bus):
    """A message of 5 MB arrives unchanged if the queue allows it."""
    sent = bytes(index * 7 % 251 for index in range(5_000_000))
    await bus.send("large", ServiceBusMessage(sent))
    async with bus.receiver("large") as receiver:
        (message,) = await receive(receiver)
        expect("whether the body is what was sent", body(message) == sent, True)
        await receiver.complete_message(message)
    await expect_counts(bus, "large", active=0)


async def too_large(bus):
    """Other queues have the tier's default limit of a mebibyte."""
    async with bus.sender("orders") as sender:
        await sender.send_messages(ServiceBusMessage(bytes(1_000_000)))
        with expect_error(MessageSizeExceededError, "amqp:link:message-size-exceeded"):
            await sender.send_messages(ServiceBusMessage(bytes(1_100_000)))
        await sender.send_messages(ServiceBusMessage("small"))
    await expect_counts(bus, "orders", active=2)


async def batch(bus):
    """A batch has a mebibyte at most, also where a single message may have more."""
    async with bus.sender("large") as sender:
        batch = await sender.create_message_batch()
        expect("limit", batch.max_size_in_bytes, 1_048_576)
        batch.add_message(ServiceBusMessage(bytes(500_000)))
        batch.add_message(ServiceBusMessage(bytes(500_000)))
        with expect_error(MessageSizeExceededError):
            batch.add_message(ServiceBusMessage(bytes(500_000)))
        await sender.send_messages(batch)
    await expect_counts(bus, "large", active=2)
