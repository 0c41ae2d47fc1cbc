"""Limits: a message that is too large, a queue that is full, a batch that is rejected as a whole.

Source: service-bus-quotas. The queue `tiny` holds a mebibyte, five messages of 200,000 bytes.
"""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageSizeExceededError, ServiceBusQuotaExceededError

from bus import expect, expect_counts, expect_error, receive


async def too_large(bus):
    """A message over the link's limit is rejected; the link stays open, and accepts the next one."""
    async with bus.sender("orders") as sender:
        link = sender._handler._link
        with expect_error(MessageSizeExceededError, "amqp:link:message-size-exceeded"):
            await sender.send_messages(ServiceBusMessage(bytes(300_000)))
        await sender.send_messages(ServiceBusMessage("small"))
        expect("whether the link is still the same", sender._handler._link is link, True)
    await expect_counts(bus, "orders", active=1)


async def full(bus):
    """A full queue rejects messages that do not fit until there is space again."""
    async with bus.sender("tiny") as sender:
        for _ in range(5):
            await sender.send_messages(large())
        with expect_error(ServiceBusQuotaExceededError, "amqp:resource-limit-exceeded"):
            await sender.send_messages(large())
        await sender.send_messages(ServiceBusMessage("small enough"))
        async with bus.receiver("tiny") as receiver:
            (message,) = await receive(receiver)
            await receiver.complete_message(message)
        await sender.send_messages(large())
    await expect_counts(bus, "tiny", active=6)


async def full_of_dead_letters(bus):
    """Dead-lettered messages take space, too."""
    async with bus.sender("tiny") as sender, bus.receiver("tiny") as receiver:
        for _ in range(5):
            await sender.send_messages(large())
            (message,) = await receive(receiver)
            await receiver.dead_letter_message(message)
        with expect_error(ServiceBusQuotaExceededError, "amqp:resource-limit-exceeded"):
            await sender.send_messages(large())
    await expect_counts(bus, "tiny", active=0, dead_letter=5)


async def batch_is_all_or_nothing(bus):
    """A batch of which only a part would fit is rejected as a whole."""
    async with bus.sender("tiny") as sender:
        for _ in range(4):
            await sender.send_messages(large())
        half = ServiceBusMessage(bytes(100_000))
        await sender.send_messages(half)
        with expect_error(ServiceBusQuotaExceededError, "amqp:resource-limit-exceeded"):
            await sender.send_messages([half, half])
        await expect_counts(bus, "tiny", active=5)
        await sender.send_messages([half])
    await expect_counts(bus, "tiny", active=6)


async def batch_fills_up(bus):
    """A batch accepts messages up to the link's limit, and can be sent."""
    async with bus.sender("orders") as sender:
        batch = await sender.create_message_batch()
        expect("limit", batch.max_size_in_bytes, 262_144)
        taken = fill(batch)
        expect("messages of 50,000 bytes in a batch", taken, 5)
        await sender.send_messages(batch)
        with expect_error(MessageSizeExceededError):
            await sender.send_messages([ServiceBusMessage(bytes(50_000)) for _ in range(6)])
    await expect_counts(bus, "orders", active=5)


def fill(batch):
    """Adds messages until the batch is full; returns their number."""
    while True:
        try:
            batch.add_message(ServiceBusMessage(bytes(50_000)))
        except MessageSizeExceededError:
            return len(batch)


def large():
    """A message of which five fit in the queue."""
    return ServiceBusMessage(bytes(200_000))
