"""Peeking: messages and their states, from a sequence number on."""

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState

from bus import body, expect, expect_counts, receive


async def states(bus):
    """Peeking shows locked and waiting messages, and both are active."""
    await bus.send("orders", ServiceBusMessage("locked"), ServiceBusMessage("waiting"))
    async with bus.receiver("orders") as receiver:
        (locked,) = await receive(receiver)
        peeked = await receiver.peek_messages(10, sequence_number=1)
        seen = [(message.sequence_number, body(message), message.state) for message in peeked]
        active = ServiceBusMessageState.ACTIVE
        expect("messages peeked", seen, [(1, b"locked", active), (2, b"waiting", active)])
        expect("locks seen by a peek", [message.locked_until_utc for message in peeked], [None, None])
        await receiver.complete_message(locked)


async def from_sequence_number(bus):
    """A peek starts at a sequence number, returns no more than requested, and changes no message."""
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
    """A peek at an empty queue returns an empty list, not an error."""
    async with bus.receiver("orders") as receiver:
        expect("peeked", await receiver.peek_messages(5), [])
