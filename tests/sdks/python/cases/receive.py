"""Receiving: with a lock, with deletion, several at once, and as a stream."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode

from bus import body, expect, expect_counts, expect_fresh_lock, receive, receive_nothing


async def peek_lock(bus):
    """A message is locked for the queue's lock duration, and removed when it is completed."""
    await bus.send("orders", ServiceBusMessage("one"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"one")
        expect_fresh_lock(message.locked_until_utc)
        await expect_counts(bus, "orders", active=1, locked=1)
        await receiver.complete_message(message)
        await expect_counts(bus, "orders", active=0, locked=0)
        await receive_nothing(receiver)


async def receive_and_delete(bus):
    """A message is removed as soon as it has been delivered."""
    await bus.send("orders", ServiceBusMessage("one"), ServiceBusMessage("two"))
    async with bus.receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        messages = await receive(receiver, 2)
        expect("bodies", [body(message) for message in messages], [b"one", b"two"])
        expect("delivery counts", [message.delivery_count for message in messages], [0, 0])
        await expect_counts(bus, "orders", active=0, locked=0)
        await receive_nothing(receiver)


async def several(bus):
    """A receive for more messages than available returns those that are available, in order."""
    await bus.send("orders", [ServiceBusMessage(str(number)) for number in range(20)])
    async with bus.receiver("orders") as receiver:
        messages = await receive(receiver, 20)
        expect("bodies", [body(message) for message in messages], [str(number).encode() for number in range(20)])
        for message in reversed(messages):
            await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, locked=0)


async def stream(bus):
    """Iterating over a receiver yields every message until none has arrived for a while."""
    await bus.send("orders", [ServiceBusMessage(str(number)) for number in range(5)])
    bodies = []
    async with bus.receiver("orders", max_wait_time=1) as receiver:
        async for message in receiver:
            bodies.append(body(message))
            await receiver.complete_message(message)
    expect("bodies", bodies, [str(number).encode() for number in range(5)])
    await expect_counts(bus, "orders", active=0, locked=0)


async def waiting(bus):
    """A receive that is already waiting gets a message that is sent later."""
    async with bus.receiver("orders") as receiver:
        await receive_nothing(receiver)
        await bus.send("orders", ServiceBusMessage("late"))
        (message,) = await receive(receiver)
        expect("body", body(message), b"late")
        expect("delivery count", message.delivery_count, 0)
        await receiver.complete_message(message)


async def prefetch(bus):
    """Prefetched messages that were not read are released, uncounted, when the receiver closes."""
    await bus.send("orders", [ServiceBusMessage(str(number)) for number in range(10)])
    async with bus.receiver("orders", prefetch_count=10) as receiver:
        (message,) = await receive(receiver)
        await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=9, locked=0)
    async with bus.receiver("orders") as receiver:
        messages = await receive(receiver, 9)
        expect("bodies", [body(message) for message in messages], [str(number).encode() for number in range(1, 10)])
        expect("delivery counts", [message.delivery_count for message in messages], [0] * 9)
        for message in messages:
            await receiver.complete_message(message)


async def closed(bus):
    """A closed receiver leaves the messages that it did not receive unchanged, and those that it received locked."""
    await bus.send("orders", [ServiceBusMessage(str(number)) for number in range(5)])
    async with bus.receiver("orders") as receiver:
        held = await receive(receiver, 2)
    await expect_counts(bus, "orders", active=5, locked=2)
    async with bus.receiver("orders") as receiver:
        rest = await receive(receiver, 3)
        expect("bodies", [body(message) for message in rest], [b"2", b"3", b"4"])
        expect("delivery counts", [message.delivery_count for message in rest], [0] * 3)
        for message in held + rest:
            await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, locked=0)


async def polling(bus):
    """A polling receiver gets messages that arrive between two polls once."""
    async with bus.receiver("orders") as receiver:
        for number in range(3):
            await receive_nothing(receiver)
            await bus.send("orders", ServiceBusMessage(str(number)))
            (message,) = await receive(receiver)
            expect("body", body(message), str(number).encode())
            expect("delivery count", message.delivery_count, 0)
            await receiver.complete_message(message)
    await expect_counts(bus, "orders", active=0, locked=0)
