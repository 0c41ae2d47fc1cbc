"""Locks: renewed in time, or lost with the SDK's own error."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError

from bus import body, expect, expect_counts, expect_error, expect_fresh_lock, receive


async def renews(bus):
    """A lock renewed in time lasts longer than its first minute."""
    await bus.send("orders", ServiceBusMessage("slow"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        for _ in range(2):
            await bus.advance(40)
            expect_fresh_lock(await receiver.renew_message_lock(message))
        await bus.advance(40)
        await receiver.complete_message(message)


async def not_overtaken(bus):
    """A completion before an advance takes effect, although the SDK does not wait for its outcome (observed 18)."""
    async with bus.sender("orders") as sender, bus.receiver("orders") as receiver:
        for number in range(1000):
            await sender.send_messages(ServiceBusMessage(str(number)))
            (message,) = await receive(receiver)
            await receiver.complete_message(message)
            await bus.advance(61)
    await expect_counts(bus, "orders", active=0, dead_letter=0)


async def loses_lock(bus):
    """Settling after the lock has expired raises the SDK's error, and the message is redelivered and counted."""
    await bus.send("orders", ServiceBusMessage("late"))
    async with bus.receiver("orders") as receiver:
        for settle in ["complete_message", "abandon_message", "dead_letter_message"]:
            (message,) = await receive(receiver)
            await bus.advance(61)
            with expect_error(MessageLockLostError):
                await getattr(receiver, settle)(message)
        (message,) = await receive(receiver)
        expect("body", body(message), b"late")
        expect("delivery count", message.delivery_count, 3)
        await receiver.complete_message(message)


async def loses_lock_on_renewal(bus):
    """Renewing after the lock has expired raises the same error."""
    await bus.send("orders", ServiceBusMessage("late"))
    async with bus.receiver("orders") as receiver:
        (message,) = await receive(receiver)
        await bus.advance(61)
        with expect_error(MessageLockLostError):
            await receiver.renew_message_lock(message)
        (again,) = await receive(receiver)
        expect("delivery count", again.delivery_count, 1)
        await receiver.complete_message(again)


async def expires_to_the_limit(bus):
    """Expired locks count as deliveries, as abandons do, until the message is dead-lettered."""
    await bus.send("limited", ServiceBusMessage("forgotten"))
    async with bus.receiver("limited") as receiver:
        for deliveries in range(3):
            (message,) = await receive(receiver)
            expect("delivery count", message.delivery_count, deliveries)
            await bus.advance(61)
    async with bus.dead_letters("limited") as receiver:
        (message,) = await receive(receiver)
        expect("reason", message.dead_letter_reason, "MaxDeliveryCountExceeded")
        expect("delivery count", message.delivery_count, 3)
        await receiver.complete_message(message)
