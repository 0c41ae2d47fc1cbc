"""Duplicate detection: a message whose id was seen within the window is accepted, and dropped.

Source: duplicate-detection. The queue `unique` remembers ids for five minutes.
"""

from azure.servicebus import ServiceBusMessage

from bus import bodies, expect, expect_counts, later, receive, receive_nothing


async def dropped(bus):
    """The second of two messages with one id is dropped without an error; ids are case-sensitive."""
    messages = [identified("first", "a"), identified("second", "a"), identified("third", "A")]
    await bus.send("unique", *messages)
    await expect_bodies(bus, [b"first", b"third"])


async def window(bus):
    """An id is remembered after its message was completed, for the window since its arrival."""
    await bus.send("unique", identified("first", "a"))
    await expect_bodies(bus, [b"first"])
    await bus.advance(240)
    await bus.send("unique", identified("again", "a"))
    await expect_bodies(bus, [])
    await bus.advance(61)
    await bus.send("unique", identified("anew", "a"))
    await expect_bodies(bus, [b"anew"])


async def scheduled(bus):
    """A scheduled message counts from its acceptance, both before and after another message."""
    async with bus.sender("unique") as sender:
        await sender.schedule_messages(identified("scheduled", "a"), later(60))
        await sender.send_messages(identified("plain", "a"))
        await sender.send_messages(identified("plain", "b"))
        await sender.schedule_messages(identified("scheduled", "b"), later(60))
    await expect_counts(bus, "unique", active=1, scheduled=1)
    await bus.advance(61)
    await expect_bodies(bus, [b"plain", b"scheduled"])


async def batch(bus):
    """Each message of a batch is compared with the others and with earlier messages."""
    await bus.send("unique", identified("first", "a"))
    await bus.send("unique", [identified("again", "a"), identified("second", "b"), identified("twice", "b")])
    await expect_bodies(bus, [b"first", b"second"])


async def without_id(bus):
    """Messages without an id are not duplicates of each other: the broker generates an id for each (D30)."""
    await bus.send("unique", ServiceBusMessage("x"), ServiceBusMessage("x"))
    await expect_bodies(bus, [b"x", b"x"])


def identified(text, message_id):
    """A message with an id."""
    return ServiceBusMessage(text, message_id=message_id)


async def expect_bodies(bus, expected):
    """Receives and completes all messages of the queue."""
    async with bus.receiver("unique") as receiver:
        if expected:
            messages = await receive(receiver, len(expected))
            expect("bodies", bodies(messages), expected)
            for message in messages:
                await receiver.complete_message(message)
        await receive_nothing(receiver)
