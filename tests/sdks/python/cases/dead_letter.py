"""The dead-letter queue: clients receive from it as from any queue, until it is empty."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode

from bus import body, expect, expect_counts, receive, receive_nothing


async def drains(bus):
    """Every dead-lettered message is received in order, with its reason, and then removed."""
    await fill(bus, 5)
    async with bus.dead_letters("orders") as receiver:
        peeked = await receiver.peek_messages(10)
        expect("reasons peeked", [message.dead_letter_reason for message in peeked], [f"R{n}" for n in range(5)])
        messages = await receive(receiver, 5)
        expect("bodies", [body(message) for message in messages], [str(n).encode() for n in range(5)])
        expect("reasons", [message.dead_letter_reason for message in messages], [f"R{n}" for n in range(5)])
        for message in messages:
            await receiver.complete_message(message)
        await receive_nothing(receiver)
        expect("peeked afterwards", await receiver.peek_messages(10), [])
    await expect_counts(bus, "orders", active=0, dead_letter=0)


async def drains_destructively(bus):
    """Receive-and-delete also empties a dead-letter queue."""
    await fill(bus, 3)
    async with bus.dead_letters("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        messages = await receive(receiver, 3)
        expect("bodies", [body(message) for message in messages], [b"0", b"1", b"2"])
    await expect_counts(bus, "orders", active=0, dead_letter=0)


async def fill(bus, number):
    """Dead-letters messages 0 to `number`, each with its own reason."""
    await bus.send("orders", [ServiceBusMessage(str(n)) for n in range(number)])
    async with bus.receiver("orders") as receiver:
        for message in await receive(receiver, number):
            await receiver.dead_letter_message(message, reason=f"R{body(message).decode()}")
    await expect_counts(bus, "orders", active=0, dead_letter=number)
