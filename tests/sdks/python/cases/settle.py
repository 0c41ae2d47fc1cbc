"""Settling: complete, abandon up to the delivery limit, dead-letter."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageAlreadySettled

from bus import body, expect, expect_counts, expect_error, receive


async def completes(bus):
    """A completed message is removed; the SDK itself rejects settling it again."""
    await bus.send("orders", ServiceBusMessage("done"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.complete_message(message)
        with expect_error(MessageAlreadySettled):
            await receiver.abandon_message(message)
    await expect_counts(bus, "orders", active=0, dead_letter=0)


async def abandons(bus):
    """An abandoned message is available again at once, counted, at its old position and with a new lock."""
    await bus.send("orders", ServiceBusMessage("first"), ServiceBusMessage("second"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.abandon_message(message)
        again, second = await receive(receiver, 2)
        expect("bodies", [body(again), body(second)], [b"first", b"second"])
        expect("delivery counts", [again.delivery_count, second.delivery_count], [1, 0])
        expect("sequence number", again.sequence_number, message.sequence_number)
        expect("lock is the old one", again.lock_token == message.lock_token, False)
        await receiver.complete_message(again)
        await receiver.complete_message(second)


async def abandons_to_the_limit(bus):
    """After the last delivery that a queue allows, a message is dead-lettered and keeps its delivery count (D4)."""
    await bus.send("limited", ServiceBusMessage("poison", message_id="p-1"))
    async with bus.receiver("limited") as receiver:
        for deliveries in range(3):
            (message,) = await receive(receiver)
            expect("delivery count", message.delivery_count, deliveries)
            await receiver.abandon_message(message)
        await expect_counts(bus, "limited", active=0, dead_letter=1)
    async with bus.dead_letters("limited") as receiver:
        (message,) = await receive(receiver)
        expect("message id", message.message_id, "p-1")
        expect("reason", message.dead_letter_reason, "MaxDeliveryCountExceeded")
        expect(
            "description",
            message.dead_letter_error_description,
            "Message could not be consumed after 3 delivery attempts.",
        )
        expect("delivery count", message.delivery_count, 3)
        await receiver.complete_message(message)
    await expect_counts(bus, "limited", active=0, dead_letter=0)


async def dead_letters(bus):
    """A dead-lettered message has the application's reason; this SDK adds nothing else."""
    await bus.send("orders", ServiceBusMessage("bad", application_properties={"kept": 1}))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await receiver.dead_letter_message(message, reason="Rejected", error_description="no total")
    async with bus.dead_letters("orders") as receiver:
        (message,) = await receive(receiver)
        expect("body", body(message), b"bad")
        expect("reason", message.dead_letter_reason, "Rejected")
        expect("description", message.dead_letter_error_description, "no total")
        expect("kept property", message.application_properties[b"kept"], 1)
        expect("delivery count", message.delivery_count, 0)
        expect("source", message.dead_letter_source, None)
        await receiver.complete_message(message)
