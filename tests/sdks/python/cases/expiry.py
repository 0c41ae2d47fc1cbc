"""Expiry, under both settings of D1: when the message expires, or when a receiver is active.

A receiver of this SDK keeps a credit open from the moment it is opened, even to peek. So these
cases look at the queue through the emulator's counts until they mean a receiver to be there.
"""

import datetime

from azure.servicebus import ServiceBusMessage

from bus import body, expect, expect_counts, receive, receive_nothing

REASON = "TTLExpiredException"
DESCRIPTION = "The message expired and was dead lettered."


async def without_receiver(bus):
    """An expired message is dead-lettered at once, or counted until a receiver attaches."""
    await bus.send("expiring", short_lived("old"), ServiceBusMessage("young"))
    await bus.advance(31)
    if bus.expiry == "eager":
        await expect_counts(bus, "expiring", active=1, dead_letter=1)
    else:
        await expect_counts(bus, "expiring", active=2, dead_letter=0)
    async with bus.receiver("expiring") as receiver:
        (message,) = await receive(receiver)
        expect("body of what is left", body(message), b"young")
        await receiver.complete_message(message)
    await expect_counts(bus, "expiring", active=0, dead_letter=1)
    await expect_expired(bus, "expiring", b"old", delivery_count=0)


async def dropped(bus):
    """If the queue does not dead-letter on expiration, an expired message is removed."""
    await bus.send("orders", short_lived("old"))
    await bus.advance(31)
    await expect_counts(bus, "orders", active=0 if bus.expiry == "eager" else 1, dead_letter=0)
    async with bus.receiver("orders") as receiver:
        await receive_nothing(receiver)
    await expect_counts(bus, "orders", active=0, dead_letter=0)


async def completed_under_lock(bus):
    """A locked message can be completed after it has expired."""
    await bus.send("expiring", short_lived("old"))
    async with bus.receiver("expiring") as receiver:
        (message,) = await receive(receiver)
        await bus.advance(31)
        await receiver.complete_message(message)
    await expect_counts(bus, "expiring", active=0, dead_letter=0)


async def abandoned_after_expiry(bus):
    """A message that has expired when it is abandoned is removed at once, under both settings."""
    await bus.send("expiring", short_lived("old"))
    async with bus.receiver("expiring") as receiver:
        (message,) = await receive(receiver)
        await bus.advance(31)
        await receiver.abandon_message(message)
    await expect_expired(bus, "expiring", b"old", delivery_count=1)


async def lock_ends_after_expiry(bus):
    """A message that has expired when its lock expires is also removed at once."""
    await bus.send("expiring", short_lived("old"))
    async with bus.receiver("expiring") as receiver:
        await receive(receiver)
        await bus.advance(61)
    await expect_expired(bus, "expiring", b"old", delivery_count=1)


async def by_default_time_to_live(bus):
    """The queue's time to live applies to messages that have none, and is the maximum for others."""
    long_lived = ServiceBusMessage("long", time_to_live=datetime.timedelta(days=1))
    await bus.send("fleeting", ServiceBusMessage("none"), long_lived)
    async with bus.receiver("fleeting") as receiver:
        messages = await receive(receiver, 2)
        expect("time to live", [m.time_to_live for m in messages], [datetime.timedelta(minutes=5)] * 2)
        for message in messages:
            await receiver.abandon_message(message)
    await bus.advance(301)
    async with bus.receiver("fleeting") as receiver:
        await receive_nothing(receiver)
    async with bus.dead_letters("fleeting") as receiver:
        messages = await receive(receiver, 2)
        expect("reasons", [message.dead_letter_reason for message in messages], [REASON] * 2)
        for message in messages:
            await receiver.complete_message(message)


def short_lived(text):
    """A message that expires after half a lock."""
    return ServiceBusMessage(text, time_to_live=datetime.timedelta(seconds=30))


async def expect_expired(bus, queue, expected_body, delivery_count):
    """Receives the only dead-lettered message of the queue, with the reason of an expired one."""
    async with bus.dead_letters(queue) as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), expected_body)
        expect("reason", message.dead_letter_reason, REASON)
        expect("description", message.dead_letter_error_description, DESCRIPTION)
        expect("delivery count", message.delivery_count, delivery_count)
        await receiver.complete_message(message)
