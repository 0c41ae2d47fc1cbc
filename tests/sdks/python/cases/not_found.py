"""Entities that do not exist: the SDK's error for every operation."""

from azure.servicebus import ServiceBusMessage

from bus import expect_missing


async def sender(bus):
    """Sending to a missing queue."""
    with expect_missing():
        await bus.send("missing", ServiceBusMessage("lost"))


async def receiver(bus):
    """Receiving from a missing queue."""
    with expect_missing():
        async with bus.receiver("missing") as receiver_of_missing:
            await receiver_of_missing.receive_messages(1, max_wait_time=30)


async def dead_letters(bus):
    """Receiving from the dead-letter queue of a missing queue."""
    with expect_missing():
        async with bus.dead_letters("missing") as receiver_of_missing:
            await receiver_of_missing.receive_messages(1, max_wait_time=30)


async def peek(bus):
    """Peeking at a missing queue."""
    with expect_missing():
        await bus.receiver("missing").peek_messages(1)
