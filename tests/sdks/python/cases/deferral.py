"""Deferred messages, which are received only by their sequence numbers.

Source: message-deferral. This SDK cannot change properties while it defers.
"""

import datetime

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError

from bus import body, bodies, expect, expect_counts, expect_error, receive, receive_nothing


async def by_number(bus):
    """Receives skip a deferred message, peeks and counts do not; it is received and locked by its sequence number."""
    await bus.send("orders", ServiceBusMessage("a"), ServiceBusMessage("b"))
    async with bus.receiver("orders") as receiver:
        await defer(receiver, 2)
        await expect_counts(bus, "orders", active=2, deferred=2, locked=0)
        await receive_nothing(receiver)
        peeked = await receiver.peek_messages(10, sequence_number=1)
        expect("states", [message.state for message in peeked], [ServiceBusMessageState.DEFERRED] * 2)
        messages = await receiver.receive_deferred_messages([2, 1])
        expect("bodies in the requested order", bodies(messages), [b"b", b"a"])
        expect("delivery counts", [message.delivery_count for message in messages], [1, 1])
        expect("states", [message.state for message in messages], [ServiceBusMessageState.DEFERRED] * 2)
        await expect_counts(bus, "orders", locked=2)
        for message in messages:
            await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, deferred=0, locked=0)


async def receive_and_delete(bus):
    """A receive-and-delete receiver also deletes deferred messages."""
    await bus.send("orders", ServiceBusMessage("a"))
    async with bus.receiver("orders") as receiver:
        await defer(receiver)
    async with bus.receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        (message,) = await receiver.receive_deferred_messages(1)
        expect("body", body(message), b"a")
    await expect_counts(bus, "orders", active=0, deferred=0)


async def stays_deferred(bus):
    """A deferred message stays deferred when it is abandoned or deferred again, or its lock expires."""
    await bus.send("orders", ServiceBusMessage("a"))
    async with bus.receiver("orders") as receiver:
        await defer(receiver)
        (message,) = await receiver.receive_deferred_messages(1)
        await receiver.abandon_message(message)
        (message,) = await receiver.receive_deferred_messages(1)
        expect("delivery count after an abandon", message.delivery_count, 2)
        await receiver.defer_message(message)
        (message,) = await receiver.receive_deferred_messages(1)
        expect("delivery count after a deferral", message.delivery_count, 3)
        await bus.advance(61)
        with expect_error(MessageLockLostError, "com.microsoft:message-lock-lost"):
            await receiver.complete_message(message)
        await receive_nothing(receiver)
        (message,) = await receiver.receive_deferred_messages(1)
        expect("delivery count after the lock's end", message.delivery_count, 4)
        await receiver.renew_message_lock(message)
        await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, deferred=0)


async def dead_lettered(bus):
    """A deferred message is dead-lettered by its receiver, or after its last delivery."""
    await bus.send("limited", ServiceBusMessage("bad"), ServiceBusMessage("poison"))
    async with bus.receiver("limited") as receiver:
        await defer(receiver, 2)
        (bad,) = await receiver.receive_deferred_messages(1)
        await receiver.dead_letter_message(bad, reason="Rejected", error_description="no total")
        # Deferring was the first delivery (observed 10).
        for _ in range(2):
            (poison,) = await receiver.receive_deferred_messages(2)
            await receiver.abandon_message(poison)
    await expect_counts(bus, "limited", active=0, deferred=0, dead_letter=2)
    async with bus.dead_letters("limited") as receiver:
        messages = await receive(receiver, 2)
        reasons = [(body(message), message.dead_letter_reason) for message in messages]
        expect("reasons", reasons, [(b"bad", "Rejected"), (b"poison", "MaxDeliveryCountExceeded")])
        for message in messages:
            await receiver.complete_message(message)


async def of_dead_letters(bus):
    """A dead-lettered message can be deferred."""
    await bus.send("orders", ServiceBusMessage("bad"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.dead_letter_message(message)
    async with bus.dead_letters("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.defer_message(message)
        await receive_nothing(receiver)
        (message,) = await receiver.receive_deferred_messages(message.sequence_number)
        await receiver.complete_message(message)
    await expect_counts(bus, "orders", dead_letter=0)


async def not_found(bus):
    """Unknown, active and locked messages are not found, and either all messages are received or none."""
    await bus.send("orders", ServiceBusMessage("deferred"), ServiceBusMessage("active"))
    async with bus.trying_once() as bus_once, bus_once.receiver("orders") as receiver:
        await defer(receiver)
        for numbers in [4711, 2, [1, 4711]]:
            with expect_not_found():
                await receiver.receive_deferred_messages(numbers)
        (message,) = await receiver.receive_deferred_messages(1)
        with expect_not_found():
            await receiver.receive_deferred_messages(1)
        await receiver.complete_message(message)
        with expect_not_found():
            await receiver.receive_deferred_messages(1)


async def expired(bus):
    """An expired deferred message is kept until it is requested: then it is not found, and is removed (D9)."""
    for queue, dead_letters in [("expiring", 1), ("orders", 0)]:
        short_lived = ServiceBusMessage("old", time_to_live=datetime.timedelta(seconds=30))
        await bus.send(queue, short_lived)
        async with bus.trying_once() as bus_once, bus_once.receiver(queue) as receiver:
            await defer(receiver)
            await bus.advance(31)
            await receive_nothing(receiver)
            await expect_counts(bus, queue, deferred=1, dead_letter=0)
            with expect_not_found():
                await receiver.receive_deferred_messages(1)
        await expect_counts(bus, queue, deferred=0, dead_letter=dead_letters)


async def defer(receiver, count=1):
    """Receives and defers this number of messages."""
    for message in await receive(receiver, count):
        await receiver.defer_message(message)


def expect_not_found():
    """The error for a sequence number without a deferred message."""
    return expect_error(MessageNotFoundError, "com.microsoft:message-not-found")
