"""Peeking: what is there, in which state, from which sequence number on."""

import datetime

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState

from bus import body, expect, expect_counts, receive


async def states(bus):
    """Active, locked, deferred and scheduled messages are all seen, each with its state."""
    await bus.send("orders", ServiceBusMessage("deferred"), ServiceBusMessage("locked"), ServiceBusMessage("active"))
    async with bus.receiver("orders") as receiver:
        (deferred,) = await receive(receiver)
        await receiver.defer_message(deferred)
        (locked,) = await receive(receiver)
        in_an_hour = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        async with bus.sender("orders") as sender:
            (scheduled,) = await sender.schedule_messages(ServiceBusMessage("scheduled"), in_an_hour)
        expect("number of the scheduled message", scheduled, 4)

        peeked = await receiver.peek_messages(10, sequence_number=1)
        seen = {message.sequence_number: (body(message), message.state) for message in peeked}
        expected = {
            1: (b"deferred", ServiceBusMessageState.DEFERRED),
            2: (b"locked", ServiceBusMessageState.ACTIVE),
            3: (b"active", ServiceBusMessageState.ACTIVE),
            4: (b"scheduled", ServiceBusMessageState.SCHEDULED),
        }
        expect("messages peeked", seen, expected)
        expect("order", list(seen), [1, 2, 3, 4])
        expect("locks seen by a peek", [message.locked_until_utc for message in peeked], [None] * 4)
        await receiver.complete_message(locked)
    await expect_counts(bus, "orders", deferred=1, scheduled=1)


async def from_sequence_number(bus):
    """A peek starts where it is told to, returns no more than asked for, and moves nothing."""
    await bus.send("orders", [ServiceBusMessage(str(number)) for number in range(1, 11)])
    async with bus.receiver("orders") as receiver:
        peeked = await receiver.peek_messages(3, sequence_number=5)
        expect("sequence numbers", [message.sequence_number for message in peeked], [5, 6, 7])
        expect("bodies", [body(message) for message in peeked], [b"5", b"6", b"7"])
        expect("delivery counts", [message.delivery_count for message in peeked], [0, 0, 0])
        expect("past the end", await receiver.peek_messages(3, sequence_number=11), [])
        expect("the last", len(await receiver.peek_messages(3, sequence_number=10)), 1)
    await expect_counts(bus, "orders", active=10, locked=0)


async def empty(bus):
    """A peek at an empty queue is an empty list, not an error."""
    async with bus.receiver("orders") as receiver:
        expect("peeked", await receiver.peek_messages(5), [])
