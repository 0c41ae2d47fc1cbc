"""Auto-delete on idle: a queue that no client uses for five minutes is deleted with its messages.

Source: the property AutoDeleteOnIdle of queues. The queue `idle` has it.
"""

from azure.servicebus import ServiceBusMessage

from bus import expect_missing, later, receive, receive_nothing


async def deleted(bus):
    """After five minutes without use the queue no longer exists, also for an open link."""
    async with bus.sender("idle") as sender:
        await sender.send_messages(ServiceBusMessage("left"))
        await bus.advance(301)
        # The SDK notices that its link has ended, attaches it again, and gets the reason.
        with expect_missing():
            await sender.send_messages(ServiceBusMessage("late"))
    with expect_missing():
        await bus.receiver("idle").receive_messages(1, max_wait_time=30)


async def used(bus):
    """Sends, peeks and scheduled messages each keep the queue for five more minutes."""
    async with bus.sender("idle") as sender:
        await bus.advance(240)
        await sender.send_messages(ServiceBusMessage("kept"))
        await bus.advance(240)
        await bus.receiver("idle").peek_messages(1)
        await bus.advance(240)
        await sender.schedule_messages(ServiceBusMessage("later"), later(600))
        await bus.advance(601)
        await bus.advance(240)
    async with bus.receiver("idle") as receiver:
        for message in await receive(receiver, 2):
            await receiver.complete_message(message)
        await receive_nothing(receiver)

